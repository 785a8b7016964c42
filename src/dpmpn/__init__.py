"""dpmpn: answers questions on a knowledge graph and shows its reasoning."""

TYPE_CHECKING = False  # to a type checker it is true, as that of `typing`, which would have to be loaded

if TYPE_CHECKING:
    from dpmpn._public import *  # noqa: F403


def __getattr__(name: str) -> object:
    """The version, or the public names: loaded when one is first used, so that Ctrl-C is heard before that."""
    if name == "__version__":
        from importlib.metadata import version

        return version("dpmpn")
    if name == "__all__" or not name.startswith("_"):
        import importlib

        public = importlib.import_module("dpmpn._public")
        globals().update({known: getattr(public, known) for known in ("__all__", *public.__all__)})
        if name in globals():  # also a room of the package, which was loaded with them
            return globals()[name]
    raise AttributeError(f"module 'dpmpn' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *__getattr__("__all__")]  # type: ignore[misc]
