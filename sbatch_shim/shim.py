"""The commands on the login node: one file under many names; sends what was typed, copies bytes.

Installed byte-compiled beside a launcher that `/usr/bin/python3 -IS` runs (Python 3.9 or newer).
Only what a bare interpreter has loaded anyway, and `_socket`, is imported on the usual way:
start-up is what a user of squeue waits for. It knows no options; the service parses and decides.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import posix
import sys
from time import monotonic, sleep

WIRE = b"1"
INTERACTIVE = (b"salloc", b"sattach", b"srun")
"""They stay in touch with the service, by the module `interact`."""
SUBMITTING = (b"sbatch", b"salloc", b"srun")
"""They send all of the environment, the limits, and the script."""
SENT = (
    b"SLURM",
    b"SBATCH",
    b"SQUEUE",
    b"SACCT",
    b"SINFO",
    b"SCANCEL",
    b"SCONTROL",
    b"SPRIO",
    b"SREPORT",
    b"TZ=",
    b"LANG=",
    b"LC_",
)
"""How variables begin that the other programs send."""
MOST_OF_A_FILE = 8 << 20
"""Bytes; Slurm takes 4 MiB as a script, and the service says so."""
PIECE = 1 << 18
MOST_ASKED = 64
PATIENCE = 10.0
"""Seconds for which a service that does not answer is tried again."""
PAUSE = 0.05
VERSION_ASKED = ([b"--version"], [b"-V"])
CLOSED = 9
"""EBADF; the module errno is not loaded for it."""

ASK = b"a"
EXIT = b"x"
EXEC = b"c"
PROMPT = b"m"
ALSO_RUN = b"b"
WRITE = b"w"
STREAMS = {b"o": 1, b"e": 2}
LINE = b"-\n"
"""Asked for in place of a file: one more line of standard input, for questions."""
ENDS = (EXIT, EXEC, PROMPT, ASK)
NO_SIGNAL = _socket.MSG_NOSIGNAL
UNKNOWN_FRAME = (
    b"this command does not know what the service wants (frame %b): "
    b"install it again with spz shims install"
)


class ContactError(Exception):
    """The service cannot be reached, or went away before it had said all."""


class RefusalError(Exception):
    """The service, or this shim, will not do it: the text for standard error."""


def main(address: bytes, version: bytes, patience: float = PATIENCE) -> None:
    """Runs the command whose name this process bears; never returns.

    `address` is the socket's path, `version` what `--version` says without a service.
    """
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    coding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
    name, *argv = [word.encode(coding, errors) for word in sys.argv]
    command = Command(name.rpartition(b"/")[2], argv, address)
    command.patience = patience
    try:
        code = interactive(command) if command.program in INTERACTIVE else command.run()
    except ContactError:
        import seldom  # type: ignore[import-not-found]  # noqa: PLC0415 - not on the usual way

        code = seldom.unreachable(command, version)
    except RefusalError as refusal:
        write(2, b"%b: error: %b\n" % (command.program, refusal.args[0]))
        code = 1
    posix._exit(code)  # without taking the interpreter down: a millisecond less


def interactive(command: "Command") -> int:
    """srun and the like, by the module that lies beside this one. Raises as `Command.run`."""
    import interact  # type: ignore[import-not-found]  # noqa: PLC0415 - not on the usual way

    code: int = interact.run(command, sys.modules[__name__])
    return code


class Command:
    """One command on its way: what is sent on each try, and what was already written."""

    def __init__(self, program: bytes, argv: "list[bytes]", address: bytes) -> None:
        self.program = program
        self.argv = argv
        self.variables = environment()
        self.address = variable(self.variables, b"SKYPURZA_SOCKET") or address
        self.bearer = bearer(variable(self.variables, b"SKYPURZA_TOKEN"))
        self.request = posix.urandom(16).hex().encode()
        self.patience = PATIENCE
        self.submits = program in SUBMITTING
        self.files = script(argv) if self.submits and program not in INTERACTIVE else {}
        self.printed = {1: 0, 2: 0}
        self.skip = {1: 0, 2: 0}
        self.theirs = 0
        """The highest exit status of the site's commands that were run behind our answers."""

    def run(self) -> int:
        """The exit status that the service tells. Raises ContactError and RefusalError."""
        head, asked = self.head(), 0
        while asked < MOST_ASKED:
            kind, payload = self.persist(head)
            if kind == EXIT:
                return max(int(payload), self.theirs)
            if kind in (EXEC, PROMPT):
                import seldom  # noqa: PLC0415

                turn = seldom.become if kind == EXEC else seldom.converse
                turn(self, payload.split(b"\0")[:-1])
            asked += payload != LINE
            self.files[payload] = self.fetch(payload)
        raise RefusalError(b"the service asked for more than %d files" % MOST_ASKED)

    def fetch(self, path: bytes) -> "tuple[bytes, int]":
        """A file that the service asked for; of questions all answers so far."""
        if path != LINE:
            return read_file(path)
        import seldom  # noqa: PLC0415

        lines: tuple[bytes, int] = seldom.one_more_line(self.files.get(path, (b"", 0))[0])
        return lines

    def head(self) -> bytes:
        """All of the envelope before the files: fields that each end with NUL."""
        sent = self.variables if self.submits else [v for v in self.variables if v.startswith(SENT)]
        fields = [WIRE, self.request, self.program, folder(), umask()]
        fields += [limits() if self.submits else b"", columns()]
        fields += [b"%d" % len(self.argv), *self.argv, b"%d" % len(sent), *sent]
        return b"\0".join(fields) + b"\0"

    def persist(self, head: bytes) -> "tuple[bytes, bytes]":
        """The last frame of a whole reply, however often the service has to be tried."""
        until = None
        while True:
            before = sum(self.printed.values())
            try:
                return self.exchange(head + pack(self.files))
            except ContactError:
                import seldom  # noqa: PLC0415

                if seldom.alone(self):
                    return EXIT, b"0"
                said = sum(self.printed.values()) - before
                if self.argv in VERSION_ASKED or (said and not self.submits):
                    raise
                if until is None or said:
                    until = monotonic() + self.patience
                elif monotonic() > until:
                    raise
                sleep(PAUSE)

    def exchange(self, body: bytes) -> "tuple[bytes, bytes]":
        """Sends all, copies what comes to the streams, returns the frame that ends it."""
        self.skip = dict(self.printed)
        connection = connect(self.address)
        try:
            send(connection, self, body)
            reply = Reply(connection)
            reply.start()
            while True:
                kind, payload = reply.frame()
                if kind in ENDS:
                    return kind, payload
                self.copy(kind, payload)
        finally:
            connection.close()

    def copy(self, kind: bytes, payload: bytes) -> None:
        """Writes what no earlier try has written: a repeated request is answered alike."""
        if kind == WRITE:
            import seldom  # noqa: PLC0415

            seldom.keep(payload, self.argv)
            return
        if kind == ALSO_RUN:
            import seldom  # noqa: PLC0415

            words = payload.split(b"\0")[:-1]
            self.theirs = max(self.theirs, seldom.run_behind(words, self.variables))
            return
        stream = STREAMS.get(kind)
        if stream is None:
            raise RefusalError(UNKNOWN_FRAME % kind)
        skipped = min(self.skip[stream], len(payload))
        self.skip[stream] -= skipped
        self.printed[stream] += len(payload) - skipped
        write(stream, payload[skipped:], self.program)


class Reply:
    """What comes back, frame by frame."""

    def __init__(self, connection: _socket.socket) -> None:
        self.connection = connection
        self.waiting = b""
        """Bytes received and not looked at."""
        self.ready = b""
        """Bytes of the body, free of HTTP's chunk lines, not taken yet."""
        self.chunked = False

    def start(self) -> None:
        """Takes HTTP's head. Raises RefusalError with a refusal's text, ContactError on 503."""
        lines = self.until(b"\r\n\r\n").lower()
        status = lines[9:12]
        self.chunked = b"\r\ntransfer-encoding: chunked" in lines
        if status == b"503":
            raise ContactError
        if status != b"200":
            raise RefusalError(self.rest().strip() or b"the service answered " + status)

    def frame(self) -> "tuple[bytes, bytes]":
        """The next frame: kind and payload."""
        kind = self.take(1)
        return kind, self.take(int.from_bytes(self.take(4), "big"))

    def take(self, size: int) -> bytes:
        """Exactly so many bytes of the body."""
        if len(self.ready) < size:
            parts, have = [self.ready], len(self.ready)
            while have < size:
                parts.append(self.more())
                have += len(parts[-1])
            self.ready = b"".join(parts)
        taken, self.ready = self.ready[:size], self.ready[size:]
        return taken

    def rest(self) -> bytes:
        """What is left of the body."""
        parts = [self.ready]
        try:
            while True:
                parts.append(self.more())
        except ContactError:
            return b"".join(parts)

    def more(self) -> bytes:
        """Some further bytes of the body. Raises ContactError at its end."""
        if self.chunked:
            return self.chunk()
        data, self.waiting = self.waiting or self.receive(), b""
        return data

    def chunk(self) -> bytes:
        """One of HTTP's chunks."""
        size = int(self.until(b"\r\n"), 16)
        if size == 0:
            raise ContactError
        while len(self.waiting) < size + 2:
            self.waiting += self.receive()
        data, self.waiting = self.waiting[:size], self.waiting[size + 2 :]
        return data

    def until(self, end: bytes) -> bytes:
        """Bytes up to and without `end`, which is taken too."""
        while end not in self.waiting:
            self.waiting += self.receive()
        taken, _, self.waiting = self.waiting.partition(end)
        return taken

    def receive(self) -> bytes:
        """What is there, at least a byte. Raises ContactError at the end."""
        try:
            data = self.connection.recv(262144)
        except OSError:
            raise ContactError from None
        if not data:
            raise ContactError
        return data


def connect(address: bytes) -> _socket.socket:
    """A socket to the service that is none of the three streams."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    while connection.fileno() < 3:  # a stream was closed: it must not become the service
        posix.open(b"/dev/null", posix.O_RDWR)
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(address)
    except PermissionError:
        raise RefusalError(b"no permission to use the socket " + address) from None
    except OSError as error:
        if error.errno is None:  # what the module itself checks: the length
            raise RefusalError(b"socket path %b: %b" % (address, str(error).encode())) from None
        raise ContactError from None
    return connection


def send(connection: _socket.socket, command: Command, body: bytes) -> None:
    """The request, whole; a service that has answered before all was sent is listened to."""
    start = b"POST /x/%b HTTP/1.0\r\nContent-Length: %d\r\n%b\r\n"
    start %= command.program, len(body), command.bearer
    try:
        connection.sendall(start + body, NO_SIGNAL)
    except BrokenPipeError:
        pass
    except OSError:
        raise ContactError from None


def bearer(token: bytes) -> bytes:
    """The line that shows a job's token to the service, for commands on machines far from it."""
    return b"Authorization: Bearer %b\r\n" % token if token.isalnum() else b""


def environment() -> "list[bytes]":
    """NAME=value as at our start: Python adds an LC_CTYPE of its own to `posix.environ`."""
    content, error = read_file(b"/proc/self/environ")
    if error:
        return [b"%b=%b" % pair for pair in posix.environ.items()]
    return [entry for entry in content.split(b"\0") if b"=" in entry]


def variable(variables: "list[bytes]", name: bytes) -> bytes:
    """The value of one variable, empty without it."""
    start = name + b"="
    return next((entry[len(start) :] for entry in variables if entry.startswith(start)), b"")


def folder() -> bytes:
    """The working directory; empty if it is gone."""
    try:
        return posix.getcwdb()
    except OSError:
        return b""


def umask() -> bytes:
    """In octal."""
    mask = posix.umask(0o077)
    posix.umask(mask)
    return b"%o" % mask


def limits() -> bytes:
    """The kernel's own table of this process's limits; empty without /proc."""
    content, error = read_file(b"/proc/self/limits")
    return b"" if error else content


def columns() -> bytes:
    """Width of the terminal; empty where there is none."""
    try:
        return b"%d" % posix.get_terminal_size(1).columns
    except OSError:
        return b""


def script(argv: "list[bytes]") -> "dict[bytes, tuple[bytes, int]]":
    """The first argument that is a file and begins like a script, so that one round trip is enough.

    A guess: the service asks for another one if it reads the line otherwise.
    """
    for word in argv:
        if word[:1] != b"-" and is_regular(word):
            content, error = read_file(word, begins=b"#!")
            if content and not error:
                return {word: (content, 0)}
    return {}


def is_regular(path: bytes) -> bool:
    """Opening anything else could wait for ever."""
    try:
        return posix.stat(path).st_mode & 0o170000 == 0o100000
    except OSError:
        return False


def read_file(path: bytes, begins: bytes = b"") -> "tuple[bytes, int]":
    """Content, and the errno that stopped it (0 for none); `-` is standard input.

    Empty if it does not begin with `begins`; cut off behind MOST_OF_A_FILE.
    """
    content, number = b"", 0
    try:
        file = 0 if path == b"-" else posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        content = posix.read(file, len(begins) or PIECE)
        if content.startswith(begins):
            content = read_on(file, content)
        if file:
            posix.close(file)
    except OSError as error:
        number = error.errno or CLOSED
    return content if content.startswith(begins) else b"", number


def read_on(file: int, content: bytes) -> bytes:
    """What was read, and the rest of the file."""
    parts, size = [content], len(content)
    while parts[-1] and size < MOST_OF_A_FILE:
        parts.append(posix.read(file, PIECE))
        size += len(parts[-1])
    return b"".join(parts)


def pack(files: "dict[bytes, tuple[bytes, int]]") -> bytes:
    """The end of the envelope: a head for each file, then the contents."""
    heads = [b"%d" % len(files)]
    for path, (content, error) in files.items():
        heads += [path, b"%d" % error, b"%d" % len(content)]
    return b"\0".join(heads) + b"\0" + b"".join(content for content, _ in files.values())


def write(stream: int, data: bytes, program: bytes = b"") -> None:
    """All of it to a stream of ours; one that is closed is passed over, as Slurm's commands do."""
    try:
        while data:
            data = data[write_some(stream, data) :]
    except OSError as error:
        if stream == 1 and error.errno != CLOSED:
            reason = posix.strerror(error.errno or CLOSED).encode()
            write(2, b"%b: error: standard output: %b\n" % (program, reason))


def write_some(stream: int, data: bytes) -> int:
    """How many bytes the stream took."""
    try:
        return posix.write(stream, data)
    except BlockingIOError:
        import seldom  # noqa: PLC0415

        seldom.wait_for(stream)
        return 0
