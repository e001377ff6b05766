"""What clients may send as JSON, field by field. A field that is not listed here is refused."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainValidator, WithJsonSchema

_PLAIN = (int, float, str, bool, type(None))


def _cell(value: Any) -> Any:
    if not isinstance(value, _PLAIN):
        raise ValueError("give a number, text, true, false or null")
    return value


def _label(value: Any) -> Any:
    if value is None or not isinstance(value, _PLAIN):
        raise ValueError("give a class: a number, text, true or false")
    return value


Cell = Annotated[Any, PlainValidator(_cell), WithJsonSchema({"type": ["number", "string", "boolean", "null"]})]
Label = Annotated[Any, PlainValidator(_label), WithJsonSchema({"type": ["number", "string", "boolean"]})]


class Shape(BaseModel):
    """A JSON object."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())


class NextQuestion(Shape):
    """What is known of a case so far."""

    values: dict[str, Cell] = Field(
        default_factory=dict, description="Values by column; null: it could not be obtained."
    )
    unavailable: list[str] = Field(
        default_factory=list, description="Columns, or features of several columns, that could not be obtained."
    )
    explain: bool = Field(False, description="Whether to say what led to the answer.")
    replaces: Annotated[str, Field(max_length=64)] | None = Field(
        None, description="Id of a decision of the same case, before its values were corrected: the case counts once."
    )
    version: str | None = Field(None, description="Answer only if this version of the model is in use.")


class Rows(Shape):
    """Cases whose values are all there."""

    rows: list[dict[str, Cell]] = Field(description="A case each: values by column; null: it could not be obtained.")
    ids: bool = Field(False, description="Whether each decision gets an id, under which its outcome can be sent.")
    version: str | None = Field(None, description="Answer only if this version of the model is in use.")


class Outcome(Shape):
    """The truth of a case that was decided."""

    id: Annotated[str, Field(max_length=64)]
    truth: Label


class Outcomes(Shape):
    """Truths of cases that were decided."""

    outcomes: list[Outcome]


class Tensor(Shape):
    """An input of the Open Inference Protocol: a column, or a matrix of all columns."""

    name: str
    shape: list[Annotated[int, Field(ge=0)]]
    datatype: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    data: list[Any] | None = None


class WantedOutput(Shape):
    """An output that is asked for."""

    name: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)


class InferRequest(Shape):
    """A request of the Open Inference Protocol."""

    id: str | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    inputs: list[Tensor]
    outputs: list[WantedOutput] | None = None
