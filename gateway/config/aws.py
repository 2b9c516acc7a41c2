"""Settings of EC2: who pays, where machines stand, what they are made of, how they are reached."""

from typing import Annotated

from pydantic import Field

from gateway.config.fields import Count, Name, Names, Positive, Seconds, Settings, one_of


class BastionSettings(Settings):
    """A host of the site's own through which machines with private addresses are reached."""

    host: str = Field(description="Its name or address.")
    port: int = Field(22, ge=1, le=65535, description="Its SSH port.")
    user: str = Field(description="Who logs in there.")
    key_file: str = Field(description="The ed25519 key for it, as OpenSSH writes it.")
    host_key: str = Field(
        pattern=r"^ssh-ed25519 \S+$",
        description="Its ed25519 host key, as `ssh-keyscan -t ed25519` tells it.",
    )


class AwsSettings(Settings):
    """EC2. Credentials come from where AWS's own tools look for them."""

    endpoint_url: str | None = Field(
        None, description="Another endpoint than AWS's own; AWS_ENDPOINT_URL does the same."
    )
    profile: str | None = Field(None, description="Profile of AWS's configuration files.")
    regions: Names = Field(
        (), description="Regions of partitions that name none; empty: all that are not opt-in."
    )
    stage: Name = Field("prod", max_length=16, description="Part of every name, and a tag.")
    tags: dict[str, str] = Field({}, description="Tags that everything of ours gets besides.")
    ssh_port: int = Field(22, ge=1, le=65535, description="Where machines' sshd listens.")
    ssh_user: str | None = Field(
        None, description="Who logs in; absent: the usual user of the image."
    )
    ssh_from: tuple[str, ...] = Field(
        (),
        description="CIDR blocks from which this gateway comes, such as 203.0.113.7/32; "
        "absent: the VPC's own.",
    )
    sudo: bool = Field(True, description="Whether the agent is run as root by sudo.")
    python: str = Field("/usr/bin/python3", description="Interpreter of the agent on machines.")
    node_folder: str = Field(
        "/var/lib/skypurza", description="The agent's folder on machines; may begin with ~/."
    )
    write_etc: bool = Field(
        True,
        description="Whether the agent makes users and names of nodes known in the machine's /etc; "
        "false where machines are not ours alone.",
    )
    address: Annotated[str, one_of("public", "private")] = Field(
        "public", description="By which address machines are reached; private gives no other."
    )
    bastion: BastionSettings | None = Field(
        None, description="The way to private addresses; absent: they are reached directly."
    )
    vpcs: dict[str, str] = Field({}, description="VPC by region; absent: the default one.")
    subnets: dict[str, Names] = Field(
        {}, description="Subnets by region; absent: all of the VPC's."
    )
    security_groups: dict[str, Names] = Field(
        {}, description="Groups by region; absent: one is made that lets SSH in from ssh_from."
    )
    interruption_queues: dict[str, str] = Field(
        {},
        description="URL of an SQS queue by region, into which EventBridge puts interruptions of "
        "spot machines; absent: machines' agents alone tell of them.",
    )
    images: dict[str, str] = Field(
        {},
        description="Image by x86_64, arm64 or gpu: an AMI, or the name of an SSM parameter; "
        "absent: Amazon Linux 2023, and the Deep Learning Base image for NVIDIA's GPUs.",
    )
    instance_profile: str | None = Field(
        None, description="Name or ARN of what machines may do in AWS; absent: nothing."
    )
    root_gb: Positive = Field(30, description="Size of the root volume.")
    sync_gb: Positive = Field(10, description="Most of one submit directory that is brought.")
    sync_files: Positive = Field(200_000, description="Most files of one submit directory.")
    kms_key: str | None = Field(None, description="Key of root volumes; absent: AWS's own.")
    devices: str = Field(
        "/dev/disk/by-id", description="Folder in which machines show attached volumes."
    )
    efa: bool = Field(True, description="EFA and a placement group for several nodes that can.")
    lease_seconds: Seconds = Field(
        1800,
        description="A machine on which nothing runs, whose results are here and to which nobody "
        "has spoken for so long ends itself; 0: never.",
    )
    grace_seconds: Seconds = Field(
        3600, description="Beyond the time limit of its job a machine ends itself after so long."
    )
    max_hours: Positive = Field(
        168, description="The same for jobs without a time limit, from their start."
    )
    keep_connections: Count = Field(64, description="SSH connections that stay open.")
