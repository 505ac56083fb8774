"""Which surfaces the stack serves, in the order their folds run. Serving one more is one more line here."""

from desk.stack.managed.surface import Surface

SURFACES: tuple[type[Surface], ...] = ()
