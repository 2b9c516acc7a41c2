"""What the engine's inbox takes."""

from broker.model.commands import Command, Many
from broker.model.reports import Report

Message = Command | Many | Report
