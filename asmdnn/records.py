"""`dataclass` with the standard library's meaning, made in a fifteenth of its time.

The standard's writes up to six methods of a class as text and compiles them: 0.3 to 0.45 ms for each of the hundreds of
classes here, half of the time before a first product.  This one lets the standard's find the fields and make the slots;
`__init__`, `__eq__` and `__hash__` are written when they are first called, what is not worth it is a closure.
`field` and `fields` are the standard's, `replace` does what its does.  They, `asdict`, pickles, copies, `match` and
`help` do what they do with its classes.  Classes of both kinds may inherit from one another.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError
from dataclasses import field as field
from dataclasses import fields as fields
from functools import cache, partial
from inspect import signature
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

Found = TypeVar("Found")
_Slots = dict[str, Callable[[Any, Any], None]]  # what sets them

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:

    def dataclass(cls=None, /, **options):
        """The decorator, with the standard's options init, repr, eq, order, frozen, slots and kw_only."""
        return _made(cls, **options) if cls else lambda cls: _made(cls, **options)

    def replace(value, /, **changes):
        """The standard's, whose fields are looked up once for each class: half the time, of mere slots two fifths."""
        slots, values_of = _unchecked_slots(type(value))
        if slots and changes.keys() <= slots.keys():
            return _copied(value, slots, values_of, changes)
        names, values_of = _given(type(value))
        if not changes.keys() <= names.keys():
            return dataclasses.replace(value, **changes)  # which says what is wrong
        return type(value)(**dict(zip(names, values_of(value), strict=True), **changes))


class once(Generic[Found]):
    """A property that is found once, without the lock of the standard's, which a fork can leave held.  Threads that ask
    at the same time may each find it."""

    def __init__(self, find: Callable[[Any], Found]) -> None:
        self.find, self.__doc__ = find, find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Found:
        if instance is None:
            return self  # type: ignore[return-value]
        found: Found = self.find(instance)
        instance.__dict__[self.name] = found
        return found


def altered(value: Any, **fields: Any) -> Any:
    """A copy with other values of some fields that need no check, in a fifth of the time of `replace`, for an instance
    whose `__post_init__` or own `__init__` would find nothing new."""
    slots, values_of = _slots(type(value))  # type: ignore[arg-type]
    if slots:
        return _copied(value, slots, values_of, fields)
    made = object.__new__(type(value))
    made.__dict__.update(value.__dict__, **fields)
    return made


@cache
def _given(cls: type) -> tuple[dict[str, None], Callable[[Any], Iterable[Any]]]:
    """The fields that `__init__` takes, and what has their values of an instance."""
    return _values_of(dict.fromkeys(field.name for field in fields(cls) if field.init))


def _values_of(names: dict[str, None]) -> tuple[dict[str, None], Callable[[Any], Iterable[Any]]]:
    return names, attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]


def _copied(value: Any, slots: _Slots, values_of: Callable[[Any], Iterable[Any]], fields: dict[str, Any]) -> Any:
    made = object.__new__(type(value))
    for put, own in zip(slots.values(), values_of(value), strict=True):
        put(made, own)
    for name, new in fields.items():
        slots[name](made, new)
    return made


@cache
def _slots(cls: Any) -> tuple[_Slots, Callable[[Any], Iterable[Any]]]:
    """What sets the fields of an instance, by name, if all of them are slots, and what has their values."""
    names, values_of = _values_of(dict.fromkeys(field.name for field in fields(cls)))
    slots = {name: getattr(cls, name, None) for name in names}
    setters = {name: slot.__set__ for name, slot in slots.items() if isinstance(slot, MemberDescriptorType)}
    return setters if len(setters) == len(slots) else {}, values_of


@cache
def _unchecked_slots(cls: Any) -> tuple[_Slots, Callable[[Any], Iterable[Any]]]:
    """The same, if making an instance does no more than to set its fields."""
    does_more = hasattr(cls, "__post_init__") or cls.__new__ is not object.__new__
    sets_all = getattr(cls.__init__, "is_written", False) and all(field.init for field in fields(cls))
    return _slots(cls) if sets_all and not does_more else ({}, iter)


_ORDER: Final = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
_Text = tuple[list[str], dict[str, Any]]  # the lines of a method, and the names in its scope


class _LeftOut:
    """In the place of an argument whose default a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_LEFT_OUT: Final = _LeftOut()


def _made(
    cls: type,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    order: bool = False,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> type:
    cls.__doc__ = cls.__doc__ or cls.__name__  # the standard's would write a signature there, at some cost
    own = {name for name, value in cls.__dict__.items() if (name, value) != ("__hash__", None)}
    is_derived = any(map(dataclasses.is_dataclass, cls.__mro__[1:]))  # then the standard's compares what is frozen
    make = dataclasses.dataclass(
        init=False, repr=False, eq=False, frozen=frozen and is_derived, slots=slots, kw_only=kw_only
    )
    cls = make(cls)
    cls.__dataclass_params__.frozen = frozen  # type: ignore[attr-defined]
    methods: dict[str, Any] = {}
    if init:
        write = _set_slots if frozen and slots else _set_frozen if frozen else _set_plainly
        methods |= {"__init__": _later(cls, "__init__", partial(_init_text, cls, write)), "__signature__": _Signature()}
    if repr:
        around = None if frozen else recursive_repr()  # what is frozen holds what was there before it
        methods["__repr__"] = _later(cls, "__repr__", partial(_repr_text, cls), around)
    if eq:
        methods["__eq__"] = _later(cls, "__eq__", partial(_comparison_text, cls, "__eq__", "=="))
        methods["__hash__"] = _later(cls, "__hash__", partial(_hash_text, cls)) if frozen else None
    for name, sign in _ORDER.items() if order else ():
        methods[name] = _later(cls, name, partial(_comparison_text, cls, name, sign))
    if frozen:
        methods |= _refusals(cls)
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _with_state}
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


def _later(
    cls: type, name: str, text: Callable[[], _Text], around: Callable[[Any], Any] | None = None
) -> Callable[..., Any]:
    """A method that replaces itself, when first called, by what `text` says; around: a decorator of it."""

    def write() -> Any:
        lines, scope = text()
        exec("\n ".join(lines), scope)
        written = scope[name]
        written.__qualname__, written.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
        written = around(written) if around else written
        written.is_written = True
        setattr(cls, name, written)
        return written

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        return write()(self, *arguments, **named)

    method.write, method.is_written = write, True  # type: ignore[attr-defined]
    return method


def _init_text(cls: type, write: Callable[[type, str, dict[str, Any]], str]) -> _Text:
    known, scope = fields(cls), {"_left_out": _LEFT_OUT}
    given = [_parameter(field, scope) for field in known if field.init and not field.kw_only]
    named = [_parameter(field, scope) for field in known if field.init and field.kw_only]
    lines = [
        write(cls, field.name, scope).format(_value(field, scope))
        for field in known
        if field.init or _has_default(cls, field)
    ]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    head = ", ".join(["self", *given, *(["*", *named] if named else [])])
    return [f"def __init__({head}) -> None:", *(lines or ["pass"])], scope


def _parameter(field: "Field[Any]", scope: dict[str, Any]) -> str:
    scope[f"_type_{field.name}"] = field.type
    text = f"{field.name}: _type_{field.name}"
    if field.default_factory is not MISSING:
        return f"{text} = _left_out"
    if field.default is MISSING:
        return text
    scope[f"_default_{field.name}"] = field.default
    return f"{text} = _default_{field.name}"


def _has_default(cls: type, field: "Field[Any]") -> bool:
    """Whether `__init__` sets a field that it does not take; without slots, a default is the class's own attribute."""
    is_slot = field.name in getattr(cls, "__slots__", ())
    return field.default_factory is not MISSING or (is_slot and field.default is not MISSING)


def _value(field: "Field[Any]", scope: dict[str, Any]) -> str:
    """What `__init__` sets a field to."""
    name = field.name
    if field.default_factory is not MISSING:
        scope[f"_make_{name}"] = field.default_factory
        return f"_make_{name}() if {name} is _left_out else {name}" if field.init else f"_make_{name}()"
    scope[f"_default_{name}"] = field.default
    return name if field.init else f"_default_{name}"


def _set_plainly(cls: type, name: str, scope: dict[str, Any]) -> str:
    return f"self.{name} = {{}}"


def _set_frozen(cls: type, name: str, scope: dict[str, Any]) -> str:
    scope["_set"] = object.__setattr__
    return f"_set(self, {name!r}, {{}})"


def _set_slots(cls: type, name: str, scope: dict[str, Any]) -> str:
    """Through the slot's descriptor, in two thirds of the time; a field of a base may be none."""
    slot = getattr(cls, name, None)
    if not isinstance(slot, MemberDescriptorType):
        return _set_frozen(cls, name, scope)
    scope[f"_set_{name}"] = slot.__set__
    return f"_set_{name}(self, {{}})"


def _values(object_name: str, names: list[str]) -> str:
    return f"({' '.join(f'{object_name}.{name},' for name in names)})"


def _comparison_text(cls: type, name: str, sign: str) -> _Text:
    names = [field.name for field in fields(cls) if field.compare]
    values = f"{'self is other or ' * (sign == '==')}{_values('self', names)} {sign} {_values('other', names)}"
    return [f"def {name}(self, other):", f"return {values} if type(other) is type(self) else NotImplemented"], {}


def _hash_text(cls: type) -> _Text:
    names = [field.name for field in fields(cls) if (field.compare if field.hash is None else field.hash)]
    return ["def __hash__(self):", f"return hash({_values('self', names)})"], {}


class _Signature:
    """What `help` and notebooks ask a class for, also before its first instance."""

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is not None:
            raise AttributeError("__signature__")
        init: Any = owner.__init__  # type: ignore[misc]
        found = signature(init.write() if hasattr(init, "write") else init)
        return found.replace(parameters=list(found.parameters.values())[1:])


def _repr_text(cls: type) -> _Text:
    values = ", ".join(f"{field.name}={{self.{field.name}!r}}" for field in fields(cls) if field.repr)
    return ["def __repr__(self):", f"return f'{{type(self).__qualname__}}({values})'"], {}


def _refusals(cls: Any) -> dict[str, Callable[..., None]]:
    """Nothing of an instance can be set or deleted, but what a class without fields of its own adds to it."""
    names = frozenset(field.name for field in fields(cls))

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _state(self: Any) -> list[Any]:
    """For pickles and copies: slots that must not be set one by one."""
    return [getattr(self, field.name) for field in fields(self)]


def _with_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
