/** Runs a daemon with the chats of all notification targets in this process: with real sockets and a real store, and a clock that moves while a test waits. */
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Daemon, startDaemon } from '@sluice/daemon'
import type { Approval, Store } from '@sluice/sdk'
import type { Chat } from '@sluice/testkit/chat'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { afterEach } from 'vitest'
import { always } from '../../../profiles/always.ts'
import { type ChatFolderOptions, chatFolder } from './chat-folder.ts'
import { CHATS, startChats } from './chats.ts'
import { followEvents, type SeenEvent } from './follow-events.ts'

export interface ChatDaemonOptions extends Omit<ChatFolderOptions, 'chats'> {
  /** The chats that are configured; default: all. */
  readonly chats?: readonly string[]
}

type Found<T> = T | undefined | false

const START_MS = Date.UTC(2026, 0, 1)
/** In real time. */
const WAIT_MS_MAX = 60_000
const STEP_MS = 20
/** A stop may take ten seconds. */
const STOPPING_STEP_MS = 200
/** The daemon is idle after this number of polls in a row that find no work. */
const IDLE_POLLS = 10
const DAEMON = { env: {}, profile: 'test', version: '0.0.0', host: '127.0.0.1', port: 0 }

/** Returns a function that starts a daemon. Every daemon is stopped after the test that started it. */
export function chatDaemons(): (options?: ChatDaemonOptions) => Promise<ChatDaemon> {
  const open: ChatDaemon[] = []
  afterEach(async () => {
    for (const daemon of open.splice(0)) await daemon.stop()
  })
  return async (options = {}) => {
    const clock = { current: testClock(START_MS) }
    const daemon = new ChatDaemon(await startChats(CHATS, () => clock.current.nowMs()), clock, options)
    open.push(daemon)
    await daemon.up()
    return daemon
  }
}

/** Its methods may be used without the object. */
export class ChatDaemon {
  readonly chats: readonly Chat[]
  readonly dataDir: string
  readonly #clock: { current: TestClock }
  readonly #configFile: string
  readonly #configured: readonly Chat[]
  #daemon: Daemon | undefined
  #following: ReturnType<typeof followEvents> | undefined

  /** `clock` holds the clock of the current run of the daemon. */
  constructor(chats: readonly Chat[], clock: { current: TestClock }, options: ChatDaemonOptions) {
    this.chats = chats
    this.#clock = clock
    this.#configured = options.chats?.map(this.chat) ?? chats
    const { dataDir, configFile } = chatFolder({ ...options, chats: this.#configured })
    this.dataDir = dataDir
    this.#configFile = configFile
  }

  get clock(): TestClock {
    return this.#clock.current
  }

  /** Throws while the daemon is down. */
  get daemon(): Daemon {
    if (!this.#daemon) throw new Error('The daemon is down. Call up() first.')
    return this.#daemon
  }

  /** The events that subscribers got since the last start. */
  get events(): readonly SeenEvent[] {
    return this.#following?.events ?? []
  }

  readonly post = async (path: string, body: object): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> => {
    const response = await fetch(`${this.daemon.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  readonly approval = (runId: string, stepId: string): Promise<Approval | undefined> =>
    this.daemon.runtime.store.approvals.get({ runId, stepId })

  /**
   * Polls until `find` returns neither undefined nor false, and resolves to that value. The clock moves by `stepMs` between two
   * polls. Rejects after 15 s of real time.
   */
  readonly until = async <T>(find: () => Found<T> | Promise<Found<T>>, stepMs: number = STEP_MS): Promise<T> => {
    const endMs = performance.now() + WAIT_MS_MAX
    for (;;) {
      const found = await find()
      if (found !== undefined && found !== false) return found
      if (performance.now() > endMs) throw new Error(`The condition did not hold within ${WAIT_MS_MAX / 1000} s: ${find}`)
      await this.clock.advance(stepMs)
      await sleep(2)
    }
  }

  /** Moves the clock, then waits until the daemon is idle. */
  readonly pass = async (ms: number): Promise<void> => {
    await this.clock.advance(ms)
    await this.idle()
  }

  /** Resolves once no message and no reply waits or runs. */
  readonly idle = (): Promise<void> => this.#noneLeft(async (store) => (await unsent(store)) + (await unanswered(store)))

  /** Resolves once no reply waits to be sent; turns may still wait for people. */
  readonly sent = (): Promise<void> => this.#noneLeft(unsent)

  /** Throws for an unknown name. */
  readonly chat = (name: string): Chat => {
    const found = this.chats.find((chat) => chat.name === name)
    if (!found) throw new Error(`There is no chat "${name}".`)
    return found
  }

  /** Starts the daemon. */
  readonly up = async (): Promise<void> => {
    this.#daemon = await startDaemon({
      ...DAEMON,
      features: always,
      dataDir: this.dataDir,
      configFile: this.#configFile,
      clock: this.clock,
    })
    this.#following = followEvents(`${this.#daemon.url}/api/events`)
    await this.#following.open
    await this.until(() => this.#configured.every(({ isConnected }) => isConnected))
  }

  /** Stops the daemon; `up` starts it again on the same data. */
  readonly down = async (): Promise<void> => {
    if (!this.#daemon) return
    let isDown = false
    const stopped = this.#daemon.stop().finally(() => {
      isDown = true
    })
    // The clock must move, because a stop waits for running work up to a time limit.
    await this.until(() => isDown, STOPPING_STEP_MS)
    await stopped
    this.#following?.close()
    this.#daemon = undefined
    this.#clock.current = testClock(this.clock.nowMs())
  }

  /** Stops the daemon and the chats, and removes the data. */
  async stop(): Promise<void> {
    await this.down()
    await Promise.all(this.chats.map((chat) => chat.close()))
    rmSync(this.dataDir, { recursive: true, force: true })
  }

  async #noneLeft(count: (store: Store) => Promise<number>): Promise<void> {
    const { store } = this.daemon.runtime
    let polls = 0
    await this.until(async () => {
      polls = (await count(store)) === 0 ? polls + 1 : 0
      return polls >= IDLE_POLLS
    })
  }
}

async function unsent({ outbox }: Store): Promise<number> {
  const { queued, sending, failed } = await outbox.counts()
  return queued + sending + failed
}

async function unanswered({ inbox }: Store): Promise<number> {
  const { pending, running } = await inbox.counts()
  return pending + running
}
