"""What is run on a node without anything of ours there: files put and read, a socket asked."""

PUT = """\
set -e
folder=$(dirname -- "$1"; echo x)
folder=${folder%?x}
[ -d "$folder" ] || { mkdir -p -- "$folder" && chmod 711 -- "$folder"; }
draft="$folder/.$2"
trap 'rm -f -- "$draft"' EXIT
(umask 077 && cat > "$draft")
chmod "$3" -- "$draft"
mv -f -- "$draft" "$1"
"""
READ = """\
[ -e "$1" ] || exit 0
exec tail -c "+$2" -- "$1"
"""
ASK = """\
import os, _socket, sys
path, patience = sys.argv[1], float(sys.argv[2])
try:
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    s = _socket.socket(_socket.AF_UNIX)
    s.settimeout(patience)
    s.connect("/proc/self/fd/%d/%s" % (folder, os.path.basename(path)))
    s.sendall(sys.stdin.buffer.read())
    piece = b" "
    while piece and not piece.endswith(b"\\n"):
        piece = s.recv(65536)
        sys.stdout.buffer.write(piece)
except OSError as e:
    sys.stderr.write("%d %s" % (e.errno or 110, e))
    sys.exit(75)
"""
NOT_ASKED = 75
"""Exit code of ASK when the socket could not be asked."""
