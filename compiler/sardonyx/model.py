"""`compile`: from a model to a CompiledModel."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sardonyx import cache as disk_cache
from sardonyx import model_cache
from sardonyx.build_options import USUAL, BuildOptions
from sardonyx.core.external import address_of
from sardonyx.errors import NeedsConstant
from sardonyx.kernels.target import Target
from sardonyx.loading import load
from sardonyx.parts import Parts
from sardonyx.targets.host import host_target
from sardonyx_runtime.feeds import Feeds
from sardonyx_runtime.native import NativeModel

if TYPE_CHECKING:
    from sardonyx.listings.listing import KernelListing
    from sardonyx.profiling.results import Profile

__all__ = ["CompiledModel", "compile", "compile_with"]


class CompiledModel(NativeModel):
    """A model compiled for this process."""

    def __init__(
        self,
        source: Any,
        parts: Parts,
        target: Target,
        threads: int,
        *,
        use_cache: bool = True,
        options: BuildOptions = USUAL,
        remake: tuple[Any, Any] | None = None,
    ) -> None:
        imports = {symbol: address_of(key) for symbol, key in parts.externals.items()}
        if options.debug is not None:
            # What only debugging needs is loaded when something is debugged.
            load_it = import_module("sardonyx.debugging").load_for_debugging
            loaded = load_it(parts, target, options.debug, imports, use_cache=use_cache)
        else:
            loaded = load(parts, target, imports, use_cache=use_cache)
        super().__init__(
            loaded.entry,
            parts.weights.__array_interface__["data"][0],
            parts.signature,
            threads=threads,
            gate=loaded.gate,
            keep=(loaded.library, parts.weights),
        )
        self._source = source  # what was compiled: a path, bytes or a ModelProto
        self._parts = parts
        self._target = target
        self._options = options
        self._use_cache = use_cache
        self._instrumented: Any = None  # once a profile was asked for
        self._remake = remake  # for a variant: what makes its module, and the structures of its inputs

    def profile(self, feeds: Feeds, *, runs: int = 20) -> Profile:
        """Where the time of a run goes, by launch, kernel and ONNX node.

        ``feeds`` are as for `run`.  The model is lowered anew from its source for an entry point that looks at
        the clock around each launch; the kernels are those that `run` uses.  It runs once to warm up, then
        ``runs`` times; times are means of the faster half.  RuntimeFault if a run fails, CompileError if the source
        has changed when the first profile is made.
        """
        if runs < 1:
            raise ValueError(f"a profile needs at least one run, not {runs}")
        if self._instrumented is None:
            self._instrumented = self._instrument()
        profile: Profile = self._instrumented.profile(feeds, runs)
        return profile

    def _instrument(self) -> Any:
        """The model's twin that measures its runs."""
        if self._remake is None:
            make, structures = import_module("sardonyx.source").open_source(self._source).module, None
        else:
            make, structures = self._remake
        return import_module("sardonyx.profiling.measure").instrument(
            make,
            structures,
            self._parts,
            self._target,
            self._options,
            {symbol: address_of(key) for symbol, key in self._parts.externals.items()},
            self.threads,
            use_cache=self._use_cache,
        )

    def listing(self, node: str | None = None) -> list[KernelListing]:
        """The model's kernels line by line, from core ops to assembly, and which line stems from which.

        ``node`` is a pattern of names (``Conv_*``): only kernels of such nodes; ValueError if there is none.
        """
        model_listings = import_module("sardonyx.listings.listing").model_listings
        listings: list[KernelListing] = model_listings(self._source, node, target=self._target)
        return listings

    def export(self, path: str | os.PathLike[str], **options: Any) -> list[Path]:
        """Write the model, compiled anew from its source for this machine, to a file by its suffix.

        A shared library (``.so``) holds everything: code, weights, signature.  ``sardonyx_runtime.load(path)``
        runs it without the compiler, on this machine and others whose CPU has the same features; a C program
        calls it as docs/abi.md says.  `sardonyx.compile_to` has the other formats, the options (which may be
        given here as well) and the errors.  CompileError if the source has changed since.
        """
        if {"target", "cpu", "features", "debug"} & options.keys():
            elsewhere: list[Path] = import_module("sardonyx.aot.export").compile_to(
                self._source, path, **options
            )
            return elsewhere
        write_model = import_module("sardonyx.aot.export").write_model
        mine = {"like": self._parts, "build": self._options}
        written: list[Path] = write_model(self._source, path, [self._target], **mine, **options)
        return written

    def ir(self, stage: str, **options: Any) -> str:
        """The model's text at a stage, made anew from its source: see `sardonyx.stage_text`."""
        stage_text = import_module("sardonyx.dumps.stages").stage_text
        text: str = stage_text(self._source, stage, target=self._target, **options)
        return text


def compile(
    model: Any,
    *,
    threads: int | None = None,
    cache: bool = True,
    passes: str | None = None,
    verify_each: bool = False,
    opt_limit: int | None = None,
    reproducer: str | None = None,
    debug: bool | str = False,
    debug_dir: str | os.PathLike[str] | None = None,
) -> CompiledModel:
    """Compile a model: a path, bytes, or a ``ModelProto``.

    A path that ends in ``.mlir`` is IR text of any level, as `sardonyx dump` and `sardonyx opt` write it.

    ``threads`` is how many threads a run may use (default: all cores of the process).  With ``cache``,
    what is compiled is kept on disk and looked up there (see ``sardonyx.cache``): a model given by path or
    as bytes that was compiled before is ready in a moment.
    The rest is for those who look for a fault, see docs/debugging-passes.md: ``passes`` is a pipeline in place
    of the usual one (``"lower,simplify,fuse{max=1}"``); ``verify_each`` checks the IR after each pass;
    ``opt_limit`` is how many optimisation steps may be taken; ``reproducer`` is the file to write if a pass
    breaks down.

    ``debug`` makes code that debuggers and profilers see into: symbols name the nodes, lines are those of
    the kernels' loop text, which is written to ``debug_dir`` (default: a folder of the cache).  True or
    ``"gdb"`` link the code to a shared library, which needs a linker; ``"perf"`` keeps it in memory and
    writes a map of it for perf.

    CompileError names the node that cannot be compiled.
    """
    debugged = (
        import_module("sardonyx.debugging").debug_options(debug, debug_dir) if debug or debug_dir else None
    )
    options = BuildOptions(passes, verify_each, opt_limit, reproducer, debugged)
    return compile_with(options, model, threads=threads, cache=cache)


def compile_with(
    options: BuildOptions, model: Any, *, threads: int | None = None, cache: bool = True
) -> CompiledModel:
    """`compile`, its rarer options in one value."""
    target = host_target()
    count = threads or _processors()
    use_cache = cache and disk_cache.enabled()
    keeps = use_cache and options == USUAL and not _watched()
    source = model_cache.source_of(model) if keeps else None
    parts = model_cache.load(source, target) if source is not None else None
    if parts is None:
        # What only compiling needs is loaded when something is compiled.
        try:
            parts, files = import_module("sardonyx.build").build(
                model, target, use_cache=use_cache, options=options
            )
        except NeedsConstant as error:
            return _specialised(model, error, options, threads=threads, cache=cache)
        if source is not None:
            model_cache.store(source, target, parts, files)
        if use_cache:
            disk_cache.tidy()
    return CompiledModel(model, parts, target, count, use_cache=use_cache, options=options)


def _watched() -> bool:
    """Whether somebody collects what passes leave behind (only then is the module loaded that does it)."""
    dumping = sys.modules.get("sardonyx.dumps.dumping")
    return dumping is not None and dumping.active()


def _specialised(
    model: Any, error: NeedsConstant, options: BuildOptions, *, threads: int | None, cache: bool
) -> CompiledModel:
    """A model whose code depends on values that are fed: compiled when they are known."""

    target = host_target()

    def compile_variant(make: Any, structures: Any) -> tuple[CompiledModel, Any]:
        use_cache = cache and disk_cache.enabled()
        build_module = import_module("sardonyx.build").build_module
        parts = build_module(make, target, use_cache=use_cache, structures=structures, options=options)
        count = threads or _processors()
        made = CompiledModel(
            model, parts, target, count, use_cache=use_cache, options=options, remake=(make, structures)
        )
        return made, parts.structure

    made: CompiledModel = import_module("sardonyx.specialised").SpecialisedModel(
        model, error, compile_variant
    )
    return made


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
