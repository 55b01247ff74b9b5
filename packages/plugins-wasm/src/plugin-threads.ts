/** The threads of all plugins: as many as are allowed, kept ready for a while, each bound to its plugin for good. */
import { AppError, type Clock } from '@sluice/sdk'
import { type CallOptions, type PluginLimits, PluginThread } from './plugin-thread.ts'

export interface CallablePlugin {
  readonly name: string
  readonly hasNetwork: boolean
  /** The module, checked anew. Throws what is wrong with it. */
  load(): Promise<Uint8Array>
}

const WAITING_MAX = 64
const RETRY_AFTER_SECS = 5
const IDLE_MS_MAX = 300_000
/** One that rests is ended no later than this after its time. */
const LOOK_EVERY_MS = 60_000

interface Resting {
  readonly thread: PluginThread
  readonly sinceMs: number
}

interface Waiting {
  readonly plugin: string
  /** Given a thread, or the right to make one. */
  readonly take: (thread: PluginThread | undefined) => void
  readonly refuse: () => void
}

export class PluginThreads {
  readonly #clock: Clock
  readonly #limits: PluginLimits
  /** The one that has rested longest comes first. */
  readonly #resting: Resting[] = []
  readonly #waiting: Waiting[] = []
  readonly #working = new Set<PluginThread>()
  /** Calls that hold a place. */
  #places = 0
  #isLooking = false
  readonly #closed = new AbortController()

  constructor(clock: Clock, limits: PluginLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** Throws `unavailable` if too many wait, `aborted`, or what went wrong in the plugin. */
  async run(plugin: CallablePlugin, input: string, options: CallOptions): Promise<string> {
    let thread = await this.#place(plugin.name, options.signal)
    try {
      thread ??= await this.#start(plugin)
      if (this.#closed.signal.aborted) throw aborted()
      this.#working.add(thread)
      return await thread.call(input, options)
    } finally {
      if (thread) this.#working.delete(thread)
      this.#leave(thread)
    }
  }

  /** Ends every thread and what runs in it. May be called twice. */
  async close(): Promise<void> {
    this.#closed.abort()
    for (const { refuse } of this.#waiting.splice(0)) refuse()
    const threads = [...this.#resting.splice(0).map(({ thread }) => thread), ...this.#working]
    await Promise.all(threads.map((thread) => thread.end()))
  }

  /** Resolves once there is a place: to a thread of the plugin that rested, or to undefined where one is to be made. */
  async #place(plugin: string, signal: AbortSignal): Promise<PluginThread | undefined> {
    if (signal.aborted || this.#closed.signal.aborted) throw aborted()
    if (this.#places < this.#limits.instances) return this.#take(plugin)
    if (this.#waiting.length >= WAITING_MAX) {
      throw new AppError('unavailable', 'too many calls of plugins wait for their turn', { retryAfterSecs: RETRY_AFTER_SECS })
    }
    const { promise, resolve, reject } = Promise.withResolvers<PluginThread | undefined>()
    const waiting: Waiting = { plugin, take: resolve, refuse: () => reject(aborted()) }
    const onAbort = () => {
      const at = this.#waiting.indexOf(waiting)
      if (at >= 0) this.#waiting.splice(at, 1)[0]?.refuse()
    }
    this.#waiting.push(waiting)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Takes a place, and the thread for it; one of another plugin has to go where there would be too many. */
  #take(plugin: string): PluginThread | undefined {
    this.#places += 1
    const at = this.#resting.findLastIndex(({ thread }) => thread.plugin === plugin)
    if (at >= 0) return this.#resting.splice(at, 1)[0]?.thread
    if (this.#places + this.#resting.length > this.#limits.instances) void this.#resting.shift()?.thread.end()
    return undefined
  }

  async #start({ name, hasNetwork, load }: CallablePlugin): Promise<PluginThread> {
    const { PLUGIN_WORKER_URL } = await import('./plugin-worker.ts')
    const thread = new PluginThread(PLUGIN_WORKER_URL, { name, hasNetwork }, this.#limits, this.#clock)
    try {
      thread.take(await load())
      return thread
    } catch (error) {
      void thread.end()
      throw error
    }
  }

  /** Gives a place back; the thread rests, unless it is over. */
  #leave(thread: PluginThread | undefined): void {
    this.#places -= 1
    if (this.#closed.signal.aborted) void thread?.end()
    else if (thread && !thread.isOver) {
      this.#resting.push({ thread, sinceMs: this.#clock.monotonicMs() })
      void this.#lookAfterResting()
    }
    const next = this.#waiting.shift()
    next?.take(this.#take(next.plugin))
  }

  /** One look after another for as long as any rest: cheaper than a timer for each call. */
  async #lookAfterResting(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    while (this.#resting.length > 0) {
      await this.#clock.sleep(LOOK_EVERY_MS, this.#closed.signal)
      const latest = this.#clock.monotonicMs() - IDLE_MS_MAX
      while (this.#resting[0] && this.#resting[0].sinceMs <= latest) void this.#resting.shift()?.thread.end()
    }
    this.#isLooking = false
  }
}

const aborted = (): AppError => new AppError('aborted', 'the call of the plugin was aborted')
