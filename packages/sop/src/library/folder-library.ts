/** The library of loaded procedures. It is reloaded by `reload`, and when a watched folder changes. */
import { access } from 'node:fs/promises'
import { signalScope, watchFolder } from '@sluice/kit'
import type { Clock, Events, FireOptions, Logger, TriggerKind, TriggerWebhook } from '@sluice/sdk'
import type { SopDefinition, SopProblem } from '../definition/definition.ts'
import { type EventContent, TriggerIndex } from '../definition/trigger-index.ts'
import type { SopLibrary } from '../run/engine-ports.ts'
import type { Agreed } from './agreements.ts'
import type { LoadRules } from './load-rules.ts'
import type { WaitingSop } from './load-sop.ts'
import type { LoadedSops, LoadSopsOptions, SopSource } from './load-sops.ts'

/** The settings that loading uses. */
export interface LibrarySettings extends Omit<LoadRules, 'nowMs'> {
  /** Only the first source is watched: a change in a folder that the agent can write waits for an operator anyway. */
  readonly sources: readonly [SopSource, ...SopSource[]]
}

/** The services of the daemon that the library calls. */
export interface LibraryServices {
  /** Returns the settings in force; called at each reload. */
  readonly settings: () => LibrarySettings
  /** Resolves to the operators' agreements; called at each reload. */
  readonly agreed: () => Promise<Agreed>
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
}

interface Watch {
  readonly folder: string
  /** Aborts when the settings name another folder. */
  readonly moved: AbortController
  readonly listening: Promise<unknown>
}

/** Empty until the first `reload`. */
export class FolderLibrary implements SopLibrary {
  readonly #services: LibraryServices
  readonly #callbacks = new Set<() => void>()
  #definitions: ReadonlyMap<string, SopDefinition> = new Map()
  #index = new TriggerIndex([])
  #problems: readonly SopProblem[] = []
  #waiting: readonly WaitingSop[] = []
  #agreed: Agreed = new Map()
  #reloading: Promise<void> | undefined
  #isStale = false
  /** Settles once the noticed changes are loaded. */
  #noticed: PromiseWithResolvers<void> | undefined
  #watch: Watch | undefined

  constructor(services: LibraryServices) {
    this.#services = services
  }

  match(event: EventContent, verified?: FireOptions['verified']): readonly SopDefinition[] {
    return this.#index.match(event, verified)
  }

  webhooks(path: string): readonly Omit<TriggerWebhook, 'secrets'>[] {
    return this.#index.webhooks(path)
  }

  matches(source: TriggerKind, topic: string): boolean {
    return this.#index.matches(source, topic)
  }

  topics(kind: TriggerKind): readonly string[] {
    return this.#index.topics(kind)
  }

  /** Sorted by name. */
  list(): readonly SopDefinition[] {
    return [...this.#definitions.values()]
  }

  get(name: string): SopDefinition | undefined {
    return this.#definitions.get(name)
  }

  /** Returns the problems of the last reload. */
  problems(): readonly SopProblem[] {
    return this.#problems
  }

  /** Returns the procedures that the last reload left out because an operator has to agree to them. */
  waiting(): readonly WaitingSop[] {
    return this.#waiting
  }

  /** Resolves once every change noticed so far is loaded. */
  async loaded(): Promise<void> {
    await Promise.all([this.#noticed?.promise, this.#reloading])
  }

  onReload(callback: () => void): () => void {
    // A new function for each call, so that a callback registered twice is called twice.
    const own = () => callback()
    this.#callbacks.add(own)
    return () => void this.#callbacks.delete(own)
  }

  /** Reloads if the operators' agreements have changed since the last reload. */
  async refresh(): Promise<void> {
    const agreed = await this.#services.agreed()
    const isSame = agreed.size === this.#agreed.size && [...agreed].every(([folder, hash]) => this.#agreed.get(folder) === hash)
    if (!isSame) await this.reload()
  }

  /** Reads all procedures and puts them in force together. Never rejects. A call during a reload makes it read once more. */
  async reload(): Promise<void> {
    this.#isStale = true
    this.#reloading ??= this.#reloadWhileStale().finally(() => {
      this.#reloading = undefined
    })
    await this.#reloading
  }

  /**
   * Reloads after each change in the folder until the signal aborts. When the settings name another folder, the watch moves there.
   * Begin the watch before the first reload, so that no change is missed. Call it once.
   */
  async watch(signal: AbortSignal): Promise<void> {
    const { settings, clock } = this.#services
    while (!signal.aborted) {
      const hasMoved = this.#watch !== undefined
      const [{ folder }] = settings().sources
      const moved = new AbortController()
      using ending = signalScope([signal, moved.signal])
      const { listening, ended } = watchFolder({
        folder,
        files: ['SOP.toml', 'SOP.md'],
        clock,
        signal: ending.signal,
        onNotice: () => {
          this.#noticed ??= Promise.withResolvers()
        },
        onChange: () => this.#reloadNoticed(),
      })
      this.#watch = { folder, moved, listening }
      // The reload that found the new folder may have read it before the watch began.
      if (hasMoved) void this.reload()
      await ended
      this.#noticed?.resolve()
      this.#noticed = undefined
    }
  }

  async #reloadNoticed(): Promise<void> {
    const noticed = this.#noticed
    this.#noticed = undefined
    await this.reload()
    noticed?.resolve()
  }

  async #reloadWhileStale(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false
      await this.#load()
    }
  }

  async #load(): Promise<void> {
    const { settings, clock, events } = this.#services
    const current = settings()
    if (this.#watch?.folder !== current.sources[0].folder) this.#watch?.moved.abort()
    // From here on the watch notices every change, so the files may be read.
    await this.#watch?.listening
    this.#agreed = await this.#services.agreed()
    const loaded = await loadFrom({ ...current, agreed: this.#agreed, nowMs: clock.nowMs() })
    const index = await TriggerIndex.of(loaded.definitions)
    this.#definitions = new Map(loaded.definitions.map((definition) => [definition.name, definition]))
    this.#index = index
    this.#problems = loaded.problems
    this.#waiting = loaded.waiting
    this.#logResult(loaded)
    events.emit({ type: 'sops_reloaded', loaded: loaded.definitions.length, broken: loaded.broken })
    for (const callback of this.#callbacks) callback()
  }

  #logResult({ problems, waiting }: LoadedSops): void {
    const { log } = this.#services
    for (const { severity, file, line, message } of problems) {
      if (severity === 'error') log.error('procedure not loaded', { file, line, problem: message })
    }
    for (const { folder, isChanged } of waiting) {
      const why = isChanged ? 'it was changed after an operator agreed to it' : 'it is new'
      log.warn('procedure in the workspace waits for the agreement of an operator', { folder, why, see: 'sluice sop waiting' })
    }
  }
}

/** Imports the loader, and with it the cron library, only when there are procedures to load. */
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
