/** A daemon with the three chats around it, in this process: real sockets, a real store, a clock that moves while something is waited for. */
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Daemon, startDaemon } from '@sluice/daemon'
import type { Approval, Store } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { afterEach } from 'vitest'
import { always } from '../../../profiles/always.ts'
import type { Chat } from '../chats/chat.ts'
import { discordChat } from '../chats/discord.ts'
import { slackChat } from '../chats/slack.ts'
import { telegramChat } from '../chats/telegram.ts'
import { type ChatFolderOptions, chatFolder } from './chat-folder.ts'
import { followEvents, type SeenEvent } from './follow-events.ts'

export type ChatName = Chat['name']

export interface ChatDaemonOptions extends Omit<ChatFolderOptions, 'chats'> {
  /** The chats that are configured; default: all. */
  readonly chats?: readonly ChatName[]
}

type Looked<T> = T | undefined | false

export interface ChatDaemon {
  readonly chats: Readonly<Record<ChatName, Chat>>
  readonly clock: TestClock
  readonly daemon: Daemon
  readonly dataDir: string
  /** What subscribers were told of since the last start. */
  readonly events: readonly SeenEvent[]
  post(path: string, body: object): Promise<{ readonly status: number; readonly body: Record<string, unknown> }>
  approval(runId: string, stepId: string): Promise<Approval | undefined>
  /** Resolves to what `look` finds once that is neither undefined nor false; meanwhile time passes, `stepMs` at a time. */
  until<T>(look: () => Looked<T> | Promise<Looked<T>>, stepMs?: number): Promise<T>
  /** So much time passes; then nothing is left to do. */
  pass(ms: number): Promise<void>
  /** Resolves once nothing waits and nothing is under way. */
  idle(): Promise<void>
  /** Resolves once nothing waits to be sent, whatever still waits for people. */
  sent(): Promise<void>
  down(): Promise<void>
  up(): Promise<void>
  stop(): Promise<void>
}

const START_MS = Date.UTC(2026, 0, 1)
const PATIENCE_MS = 15_000
const STEP_MS = 20
/** A stop may wait for ten seconds. */
const STOPPING_STEP_MS = 200
/** Rounds in which nothing was to be done, after which nothing is. */
const QUIET_ROUNDS = 10

/** For the test file that calls it: makes daemons and takes them down after each test. */
export function chatDaemons(): (options?: ChatDaemonOptions) => Promise<ChatDaemon> {
  const open: ChatDaemon[] = []
  afterEach(async () => {
    for (const daemon of open.splice(0)) await daemon.stop()
  })
  return async (options) => {
    const daemon = await startChatDaemon(options)
    open.push(daemon)
    return daemon
  }
}

async function startChatDaemon(options: ChatDaemonOptions = {}): Promise<ChatDaemon> {
  const { chats: names = ['telegram', 'discord', 'slack'] } = options
  let clock = testClock(START_MS)
  const [telegram, discord, slack] = await Promise.all([telegramChat(), discordChat(() => clock.nowMs()), slackChat()])
  const chats = { telegram, discord, slack }
  const used = names.map((name) => chats[name])
  const { dataDir, configFile } = chatFolder({ ...options, chats: used })
  let daemon: Daemon | undefined
  let following: ReturnType<typeof followEvents> | undefined
  const running = (): Daemon => daemon ?? notRunning()

  const until: ChatDaemon['until'] = async (look, stepMs = STEP_MS) => {
    const endMs = performance.now() + PATIENCE_MS
    for (;;) {
      const found = await look()
      if (found !== undefined && found !== false) return found
      if (performance.now() > endMs) throw new Error(`nothing came of it in ${PATIENCE_MS / 1000} s: ${look}`)
      await clock.advance(stepMs)
      await sleep(2)
    }
  }
  const quiet = async (busy: (store: Store) => Promise<number>): Promise<void> => {
    const { store } = running().runtime
    let rounds = 0
    await until(async () => {
      rounds = (await busy(store)) === 0 ? rounds + 1 : 0
      return rounds >= QUIET_ROUNDS
    })
  }
  const idle = () => quiet(async (store) => (await unsent(store)) + (await unanswered(store)))
  const up = async (): Promise<void> => {
    daemon = await startDaemon({ ...DAEMON, features: always, dataDir, configFile, clock })
    following = followEvents(`${daemon.url}/api/events`)
    await following.open
    await until(() => used.every(({ isConnected }) => isConnected))
  }
  const down = async (): Promise<void> => {
    if (!daemon) return
    let isDown = false
    const stopped = daemon.stop().finally(() => {
      isDown = true
    })
    // What has to end in time has its time.
    await until(() => isDown, STOPPING_STEP_MS)
    await stopped
    following?.close()
    daemon = undefined
    clock = testClock(clock.nowMs())
  }
  await up()
  return {
    chats,
    get clock() {
      return clock
    },
    get daemon() {
      return running()
    },
    dataDir,
    get events() {
      return following?.events ?? []
    },
    async post(path, body) {
      const response = await fetch(`${running().url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    },
    approval: (runId, stepId) => running().runtime.store.approvals.get({ runId, stepId }),
    until,
    async pass(ms) {
      await clock.advance(ms)
      await idle()
    },
    idle,
    sent: () => quiet(unsent),
    down,
    up,
    async stop() {
      await down()
      await Promise.all(Object.values(chats).map((chat) => chat.close()))
      rmSync(dataDir, { recursive: true, force: true })
    },
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

const DAEMON = { env: {}, profile: 'test', version: '0.0.0', host: '127.0.0.1', port: 0 }

const notRunning = (): never => {
  throw new Error('the daemon is down')
}
