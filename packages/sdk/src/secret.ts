const text = new WeakMap<Secret, string>()

/** A value that must never show. Printing, joining or serialising it yields `[secret]`; `reveal()` is the only way in. */
export class Secret {
  constructor(value: string) {
    text.set(this, value)
  }

  /** The plain value, for the one call that needs it. Never store or log what this returns. */
  reveal(): string {
    return text.get(this) ?? ''
  }

  toString(): string {
    return '[secret]'
  }

  toJSON(): string {
    return '[secret]'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]'
  }
}
