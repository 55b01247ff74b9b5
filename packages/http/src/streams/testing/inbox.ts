/** Collects the items that arrive over a connection, and lets a test wait for them. */
export class Inbox<T> {
  readonly all: T[] = []
  #wanted: { count: number; resolve: () => void }[] = []

  push(item: T): void {
    this.all.push(item)
    for (const { resolve } of this.#wanted.filter(({ count }) => this.all.length >= count)) resolve()
    this.#wanted = this.#wanted.filter(({ count }) => this.all.length < count)
  }

  /** Resolves to the first `count` items once they have arrived. */
  async first(count: number): Promise<T[]> {
    if (this.all.length < count) await new Promise<void>((resolve) => this.#wanted.push({ count, resolve }))
    return this.all.slice(0, count)
  }
}
