/**
 * The worker threads of all plugins. A thread runs only one plugin, and stays ready for a while after a call. Calls beyond
 * `instances` wait in order.
 */
import { AppError, type Clock } from '@sluice/sdk'
import { type PluginCall, type PluginLimits, PluginThread } from './plugin-thread.ts'

export interface CallablePlugin {
  readonly name: string
  readonly hasNetwork: boolean
  /** Reads the module and checks it again. Throws an `AppError` for a module that may not run. */
  load(): Promise<Uint8Array>
}

const WAITING_MAX = 64
const RETRY_AFTER_SECS = 5
const IDLE_MS_MAX = 300_000
/** An idle thread ends at most this long after `IDLE_MS_MAX`. */
const IDLE_CHECK_MS = 60_000

interface IdleThread {
  readonly thread: PluginThread
  readonly sinceMs: number
}

interface Waiter {
  readonly plugin: string
  /** Passes the permit on, with an idle thread of the plugin if there is one. */
  readonly admit: (thread: PluginThread | undefined) => void
  readonly refuse: () => void
}

export class PluginThreads {
  readonly #clock: Clock
  readonly #limits: PluginLimits
  /** Longest idle first. */
  readonly #idle: IdleThread[] = []
  readonly #waiters: Waiter[] = []
  readonly #working = new Set<PluginThread>()
  /** The number of calls that hold one of the `instances` permits. */
  #permits = 0
  #isCheckingIdle = false
  readonly #closed = new AbortController()

  constructor(clock: Clock, limits: PluginLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** Runs one call of a plugin. Throws `unavailable` when too many calls wait, `aborted`, and like `PluginThread.call`. */
  async run(plugin: CallablePlugin, input: string, call: PluginCall): Promise<string> {
    let thread = await this.#acquire(plugin.name, call.signal)
    try {
      thread ??= await this.#startThread(plugin)
      if (this.#closed.signal.aborted) throw aborted()
      this.#working.add(thread)
      return await thread.call(input, call)
    } finally {
      if (thread) this.#working.delete(thread)
      this.#release(thread)
    }
  }

  /** Ends every thread and every call. May be called twice. */
  async close(): Promise<void> {
    this.#closed.abort()
    for (const { refuse } of this.#waiters.splice(0)) refuse()
    const threads = [...this.#idle.splice(0).map(({ thread }) => thread), ...this.#working]
    await Promise.all(threads.map((thread) => thread.end()))
  }

  /** Waits for a permit. Resolves to an idle thread of the plugin, or to undefined when the caller must start one. */
  async #acquire(plugin: string, signal: AbortSignal): Promise<PluginThread | undefined> {
    if (signal.aborted || this.#closed.signal.aborted) throw aborted()
    if (this.#permits < this.#limits.instances) return this.#takePermit(plugin)
    if (this.#waiters.length >= WAITING_MAX)
      throw new AppError('unavailable', 'Too many plugin calls are waiting', { retryAfterSecs: RETRY_AFTER_SECS })
    const { promise, resolve, reject } = Promise.withResolvers<PluginThread | undefined>()
    const waiter: Waiter = { plugin, admit: resolve, refuse: () => reject(aborted()) }
    const onAbort = () => {
      const at = this.#waiters.indexOf(waiter)
      if (at >= 0) this.#waiters.splice(at, 1)[0]?.refuse()
    }
    this.#waiters.push(waiter)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Returns an idle thread of the plugin. Without one, ends an idle thread of another plugin if all instances are in use. */
  #takePermit(plugin: string): PluginThread | undefined {
    this.#permits += 1
    const at = this.#idle.findLastIndex(({ thread }) => thread.plugin === plugin)
    if (at >= 0) return this.#idle.splice(at, 1)[0]?.thread
    if (this.#permits + this.#idle.length > this.#limits.instances) void this.#idle.shift()?.thread.end()
    return undefined
  }

  async #startThread({ name, hasNetwork, load }: CallablePlugin): Promise<PluginThread> {
    const { PLUGIN_WORKER_URL } = await import('./plugin-worker.ts')
    const thread = new PluginThread(PLUGIN_WORKER_URL, name, hasNetwork, this.#limits, this.#clock)
    try {
      thread.load(await load())
      return thread
    } catch (error) {
      void thread.end()
      throw error
    }
  }

  /** Gives the permit to the next waiter. The thread becomes idle unless it has ended. */
  #release(thread: PluginThread | undefined): void {
    this.#permits -= 1
    if (this.#closed.signal.aborted) void thread?.end()
    else if (thread && !thread.isEnded) {
      this.#idle.push({ thread, sinceMs: this.#clock.monotonicMs() })
      void this.#endIdleThreads()
    }
    const next = this.#waiters.shift()
    next?.admit(this.#takePermit(next.plugin))
  }

  /** Checks periodically while any thread is idle, which costs less than a timer for each call. */
  async #endIdleThreads(): Promise<void> {
    if (this.#isCheckingIdle) return
    this.#isCheckingIdle = true
    while (this.#idle.length > 0) {
      await this.#clock.sleep(IDLE_CHECK_MS, this.#closed.signal)
      const latestMs = this.#clock.monotonicMs() - IDLE_MS_MAX
      while (this.#idle[0] && this.#idle[0].sinceMs <= latestMs) void this.#idle.shift()?.thread.end()
    }
    this.#isCheckingIdle = false
  }
}

const aborted = (): AppError => new AppError('aborted', 'The call of the plugin was aborted')
