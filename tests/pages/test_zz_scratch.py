from tests.interrupts.house import authority, fresh, house, nothing_remembered, open_of, sent
from tests.pages.runs import Browser
import pytest

@pytest.mark.parametrize("ev", [{"receipt": "x"}, {"receipt": ["x"]}, {"receipt": {"a": 1}}, {"budget": ["day"], "verdict": []}, {"output": 1}])
def test_ev(house, ev):
    run = house.run()
    house.interrupt(house.agent, run, "input_required", question="how many?", evidence=ev)
    page = Browser(house, "olga").get(f"/runs/{run.pk}")
    assert "how many" in page
