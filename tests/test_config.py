"""Settings are refused by name, value and what would be right, before anything runs."""

import pytest

from feedbench.config import Settings
from feedbench.errors import SettingsError


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"steps": 0}, r"steps=0: .*greater than or equal to 5"),
        ({"image_size": 7}, r"image_size=7: .*greater than or equal to 32"),
        ({"profile_steps": 50}, r"profile_steps=50: longer than the steps=30 .* use profile_steps <= 30"),
        ({"stepz": 30}, r"stepz: no such setting; did you mean 'steps'"),
        ({"accelerator": "tpu"}, r"accelerator=tpu: .*'auto', 'cpu', 'gpu' or 'emulated'"),
        ({"accelerator": "emulated"}, r"emulated_step_ms: accelerator=emulated needs it"),
        ({"emulated_step_ms": 45}, r"emulated_step_ms=45: means something with accelerator=emulated only"),
        ({"rounds": 3, "max_rounds": 2}, r"max_rounds=2: smaller than rounds=3"),
        ({"variants": ["naive", "naive"]}, r"variants=naive,naive: a name stands twice"),
        ({"min_effect": float("nan")}, r"min_effect"),
        ({"batch_size": "many"}, r"batch_size=many: .*valid integer"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value_and_the_way_out(given, told):
    with pytest.raises(SettingsError, match=told) as caught:
        Settings.parse(given)
    assert caught.value.exit_code == 2


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(SettingsError, match=r"image_size=7: .*; steps=0: "):
        Settings.parse({"steps": 0, "image_size": 7})


def test_text_from_a_command_line_is_read_as_the_type_it_stands_for():
    settings = Settings.parse({"steps": "40", "emulated_step_ms": "4.5", "accelerator": "emulated"})
    assert (settings.steps, settings.emulated_step_ms) == (40, 4.5)


def test_an_empty_field_of_the_form_is_the_default():
    assert Settings.parse({"photos": None, "variant_modules": None, "rounds": 2}) == Settings(rounds=2)
