"""What a machine costs by what its provider told of its pool since it was launched."""

from dataclasses import replace

from accounting.ledger import Meter
from accounting.rates import Price, in_force
from broker.model.offer import Machine


def repriced(meter: Meter, machine: Machine) -> Meter:
    """The meter by the prices of its machine's pool; as it is where none is told, or it is over."""
    if not machine.prices or meter.closed:
        return meter
    first = Price(meter.running_at, meter.prices[0].micro_usd_per_hour)
    return replace(meter, prices=in_force(machine.prices, meter.terms, first))
