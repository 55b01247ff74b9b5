/** Positions in conversations up to which every message is durable, kept across restarts so that missed messages can be read. */
import type { KeyValue, ListenCursors } from '@sluice/sdk'
import { members } from './foreign-json.ts'

/** A position, and what the channel keeps with it. */
export interface Position {
  /**
   * The id of a message, up to which every message of the conversation is durable. Ids are numbers as text, or texts of one
   * length: a longer one is later, and of two with the same length the greater one.
   */
  readonly after: string
}

export interface CursorsOptions<Kept extends Position> {
  readonly keyValue: KeyValue
  /** The key of all positions. */
  readonly key: string
  /** The bounds. A scope belongs to the first group that has it; in a full group the oldest position is forgotten. */
  readonly groups: readonly { readonly max: number; has(scope: string): boolean }[]
  /** Scopes that are never forgotten to make room. */
  isPinned?(scope: string): boolean
  /** Checks a stored entry; undefined drops it. */
  read(scope: string, stored: unknown): Kept | undefined
  /** Returns the entries of a stored value, which may be of an earlier release. The members of the object unless given. */
  entriesOf?(stored: unknown): readonly (readonly [scope: string, stored: unknown])[]
}

export class Cursors<Kept extends Position = Position> implements ListenCursors {
  readonly #options: CursorsOptions<Kept>
  readonly #positions = new Map<string, Kept>()
  /** Positions reached while the cursors are held. */
  readonly #held = new Map<string, string>()
  #holds = 0
  #isLoaded = false
  /** Settles when the last requested write has ended. */
  #written: Promise<void> = Promise.resolve()
  #isDirty = false

  constructor(options: CursorsOptions<Kept>) {
    this.#options = options
  }

  /** Adds the stored positions to the positions of this run, which win. Skips malformed entries. */
  async load(): Promise<void> {
    const { keyValue, key, read, entriesOf = (stored) => Object.entries(members(stored)) } = this.#options
    for (const [scope, stored] of entriesOf(await keyValue.get(key))) {
      const position = this.#positions.has(scope) ? undefined : read(scope, stored)
      if (position) this.#put(scope, position)
    }
    this.#isLoaded = true
  }

  get(scope: string): Kept | undefined {
    return this.#positions.get(scope)
  }

  entries(): readonly (readonly [scope: string, position: Kept])[] {
    return [...this.#positions]
  }

  /** Starts to follow a scope. A scope that is followed already keeps its members and gains the new ones. */
  follow(scope: string, position: Kept): void {
    const known = this.#positions.get(scope)
    const isNews = !known || Object.keys(position).some((member) => !(member in known))
    if (isNews) this.#put(scope, { ...position, ...known })
    // A scope that a crash made unknown would not be read after it. The runner reports a failed write.
    if (!known) void this.flush().catch(() => undefined)
  }

  /** Records that every message of a followed scope up to `after` is durable. A position never moves back. */
  advance(scope: string, after: string): void {
    const known = this.#positions.get(scope)
    if (!known) return
    if (this.#holds > 0) this.#held.set(scope, later(this.#held.get(scope) ?? '', after))
    else if (isLater(after, known.after)) this.#put(scope, { ...known, after })
  }

  forget(scope: string): void {
    this.#held.delete(scope)
    if (this.#positions.delete(scope)) this.#isDirty = true
  }

  /**
   * Keeps all positions where they are, because earlier messages may be missing. Returns a function that moves them to where
   * they would be, once every hold has been released.
   */
  hold(): () => void {
    this.#holds += 1
    let isHeld = true
    return () => {
      if (isHeld) this.#holds -= 1
      isHeld = false
      if (this.#holds > 0) return
      const reached = [...this.#held]
      this.#held.clear()
      for (const [scope, after] of reached) this.advance(scope, after)
    }
  }

  /** Stores the positions if one has changed. Before `load`, nothing is stored. After a failed write the next call tries again. */
  flush(): Promise<void> {
    const write = (): Promise<void> => this.#write()
    this.#written = this.#written.then(write, write)
    return this.#written
  }

  async #write(): Promise<void> {
    if (!this.#isDirty || !this.#isLoaded) return
    const { keyValue, key } = this.#options
    this.#isDirty = false
    await keyValue.set(key, Object.fromEntries(this.#positions)).catch((error: unknown) => {
      this.#isDirty = true
      throw error
    })
  }

  #put(scope: string, position: Kept): void {
    const isNew = !this.#positions.has(scope)
    this.#positions.set(scope, position)
    this.#isDirty = true
    if (isNew) this.#makeRoom(scope)
  }

  #makeRoom(scope: string): void {
    const group = this.#options.groups.find(({ has }) => has(scope))
    if (!group) return
    const inGroup = [...this.#positions].filter(([other]) => this.#options.groups.find(({ has }) => has(other)) === group)
    if (inGroup.length > group.max) this.#forgetOldest(inGroup)
  }

  #forgetOldest(positions: readonly (readonly [string, Kept])[]): void {
    const [first, ...others] = positions.filter(([scope]) => this.#options.isPinned?.(scope) !== true)
    if (!first) return
    const [oldest] = others.reduce((a, b) => (isLater(a[1].after, b[1].after) ? b : a), first)
    this.forget(oldest)
  }
}

const isLater = (a: string, b: string): boolean => a.length > b.length || (a.length === b.length && a > b)

const later = (a: string, b: string): string => (isLater(a, b) ? a : b)
