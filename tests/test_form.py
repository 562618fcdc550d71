"""The trigger form accepts what the plan accepts, and shows it as a person expects."""

import jsonschema
import pytest

from feedbench.config import Settings
from feedbench.errors import SettingsError
from feedbench.flow.checks import check
from feedbench.form import EMBEDDED, NIGHTLY, form


def schema(name):
    return {key: value for key, value in form()[name].items() if key not in ("default", "section")}


def test_every_setting_is_a_field_with_its_section_title_and_help():
    fields = form()
    assert list(fields) == list(Settings.model_fields)
    for name, field in fields.items():
        assert field["section"] in ("Data", "Pipelines", "Training", "Measurement"), name
        assert field["title"], name
        assert field["description"], name


@pytest.mark.parametrize("preset", [NIGHTLY, EMBEDDED])
def test_what_a_preset_holds_both_the_form_and_the_plan_accept(preset):
    for name, value in preset.items():
        jsonschema.validate(value, schema(name))
    check(preset)


def test_the_nightly_run_is_the_real_thing():
    settings = check({name: field["default"] for name, field in form().items()})
    assert (settings.source, settings.weights, settings.rounds) == ("flower_photos", "imagenet", 3)
    assert len(settings.variants) == 10


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("steps", 0),
        ("image_size", 7),
        ("accelerator", "tpu"),
        ("rounds", "many"),
        ("emulated_step_ms", 0),
        ("photos", 3),
    ],
)
def test_what_the_form_refuses_the_plan_refuses_too(name, bad):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, schema(name))
    with pytest.raises(SettingsError):
        Settings.parse({name: bad})


def test_variants_are_chosen_by_readable_names():
    field = form()["variants"]
    assert field["values_display"]["cache_memory"] == "cache in memory"
    assert set(field["examples"]) == set(field["values_display"])
