/** The procedures that are loaded, and how they come to be others: by `reload`, or because their folder changed (§4.3). */
import { access } from 'node:fs/promises'
import { signalScope } from '@sluice/kit'
import type { Clock, Events, Logger, SopEvent, SopMode, TriggerKind } from '@sluice/sdk'
import type { Agreed } from './agreements.ts'
import type { SopDefinition, SopProblem } from './definition.ts'
import type { SopLibrary } from './engine-deps.ts'
import type { WaitingSop } from './load-sop.ts'
import type { LoadedSops, LoadSopsOptions, SopSource } from './load-sops.ts'
import { TriggerIndex } from './trigger-index.ts'
import { watchFolder } from './watch-folder.ts'

/** Those of `[sop]` that loading reads. */
export interface LibrarySettings {
  /** At least one; the first is watched. What the agent can write needs no watch: a change there waits for an operator. */
  readonly sources: readonly [SopSource, ...SopSource[]]
  readonly defaultMode: SopMode
  /** As in `LoadSopsOptions`. */
  readonly pathProblem?: (path: string) => string | undefined
}

export interface LibraryDeps {
  /** Read at each reload. */
  readonly settings: () => LibrarySettings
  /** What operators have agreed to; read at each reload. */
  readonly agreed: () => Promise<Agreed>
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
}

/** Empty until the first `reload`. */
export class SopFolder implements SopLibrary {
  readonly #deps: LibraryDeps
  readonly #callbacks = new Set<() => void>()
  #definitions: ReadonlyMap<string, SopDefinition> = new Map()
  #index = new TriggerIndex([])
  #problems: readonly SopProblem[] = []
  #waiting: readonly WaitingSop[] = []
  #agreed: Agreed = new Map()
  #reloading: Promise<void> | undefined
  #isStale = false
  /** Settles once the changes that were noticed are loaded. */
  #noticed: PromiseWithResolvers<void> | undefined
  #watched: { readonly folder: string; readonly moved: AbortController; readonly listening: Promise<unknown> } | undefined

  constructor(deps: LibraryDeps) {
    this.#deps = deps
  }

  match(event: Pick<SopEvent, 'source' | 'topic' | 'payload'>): readonly SopDefinition[] {
    return this.#index.match(event)
  }

  matches(source: TriggerKind, topic: string): boolean {
    return this.#index.matches(source, topic)
  }

  topics(kind: TriggerKind): readonly string[] {
    return this.#index.topics(kind)
  }

  /** By name. */
  list(): readonly SopDefinition[] {
    return [...this.#definitions.values()]
  }

  get(name: string): SopDefinition | undefined {
    return this.#definitions.get(name)
  }

  /** What was wrong at the last reload. */
  problems(): readonly SopProblem[] {
    return this.#problems
  }

  /** What was not loaded at the last reload, because an operator has to agree first. */
  waiting(): readonly WaitingSop[] {
    return this.#waiting
  }

  /** Reads everything anew if operators have agreed to something else since the last reload. */
  async refresh(): Promise<void> {
    const agreed = await this.#deps.agreed()
    const isSame = agreed.size === this.#agreed.size && [...agreed].every(([folder, hash]) => this.#agreed.get(folder) === hash)
    if (!isSame) await this.reload()
  }

  /** Resolves once every change noticed so far is loaded. */
  async settled(): Promise<void> {
    await Promise.all([this.#noticed?.promise, this.#reloading])
  }

  onReload(callback: () => void): () => void {
    // A function of its own for each call, so that a callback given twice is called twice.
    const own = () => callback()
    this.#callbacks.add(own)
    return () => void this.#callbacks.delete(own)
  }

  /** Reads everything anew and puts it in force at once; never rejects. A call while one is under way makes it read again. */
  async reload(): Promise<void> {
    this.#isStale = true
    this.#reloading ??= this.#reloadWhileStale().finally(() => {
      this.#reloading = undefined
    })
    await this.#reloading
  }

  /**
   * Reloads whenever something in the folder changes, until the signal aborts; a reload that reads another folder takes the
   * watch along. Begun before the first reload, it misses nothing. Call it once.
   */
  async watch(signal: AbortSignal): Promise<void> {
    const { settings, clock } = this.#deps
    while (!signal.aborted) {
      const wasMoved = this.#watched !== undefined
      const [{ folder }] = settings().sources
      const moved = new AbortController()
      using ending = signalScope([signal, moved.signal])
      const onNotice = () => {
        this.#noticed ??= Promise.withResolvers()
      }
      const onChange = async () => {
        const noticed = this.#noticed
        this.#noticed = undefined
        await this.reload()
        noticed?.resolve()
      }
      const { listening, ended } = watchFolder({ folder, clock, signal: ending.signal, onNotice, onChange })
      this.#watched = { folder, moved, listening }
      // It was being read before anybody listened.
      if (wasMoved) void this.reload()
      await ended
      this.#noticed?.resolve()
      this.#noticed = undefined
    }
  }

  async #reloadWhileStale(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false
      await this.#load()
    }
  }

  async #load(): Promise<void> {
    const { settings, clock, events, log } = this.#deps
    const current = settings()
    if (this.#watched?.folder !== current.sources[0].folder) this.#watched?.moved.abort()
    // What changes while it is read is heard.
    await this.#watched?.listening
    this.#agreed = await this.#deps.agreed()
    const { definitions, problems, broken, waiting } = await loadFrom({ ...current, agreed: this.#agreed, nowMs: clock.nowMs() })
    const index = await TriggerIndex.of(definitions)
    this.#definitions = new Map(definitions.map((definition) => [definition.name, definition]))
    this.#index = index
    this.#problems = problems
    this.#waiting = waiting
    for (const { severity, file, line, message } of problems) {
      if (severity === 'error') log.error('a procedure is not loaded', { file, line, problem: message })
    }
    for (const { folder, isChanged } of waiting) {
      const why = isChanged ? 'it was changed after an operator agreed to it' : 'it is new'
      log.warn('A procedure in the workspace is not loaded until an operator agrees to it.', { folder, why, see: 'sluice sop waiting' })
    }
    events.emit({ type: 'sops_reloaded', loaded: definitions.length, broken })
    for (const callback of this.#callbacks) callback()
  }
}

/** What reads procedures, and all it knows of cron, is nothing a daemon without any need load. */
async function loadFrom(options: LoadSopsOptions): Promise<LoadedSops> {
  const missing = await Promise.all(options.sources.map(({ folder }) => isMissing(folder)))
  if (!missing.includes(false)) return { definitions: [], problems: [], broken: 0, waiting: [] }
  const { loadSops } = await import('./load-sops.ts')
  return loadSops(options)
}

const isMissing = (path: string): Promise<boolean> =>
  access(path).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === 'ENOENT',
  )
