/** A daemon with the three chats around it, in this process: real sockets, a real store, a clock that moves while something is waited for. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Daemon, startDaemon } from '@sluice/gateway/daemon'
import type { Approval } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { afterEach } from 'vitest'
import { always } from '../../../../profiles/always.ts'
import type { Chat } from './chats/chat.ts'
import { discordChat } from './chats/discord.ts'
import { slackChat } from './chats/slack.ts'
import { telegramChat } from './chats/telegram.ts'
import { followEvents, type SeenEvent } from './follow-events.ts'

export type ChatName = Chat['name']

export interface ChatDaemonOptions {
  /** The chats that are configured; default: all. */
  readonly chats?: readonly ChatName[]
  /** More keys for each chat's section. */
  readonly keys?: Readonly<Record<string, string | number | boolean>>
  /** More sections. */
  readonly toml?: string
  /** Files of the workspace. */
  readonly files?: Readonly<Record<string, string>>
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
  down(): Promise<void>
  up(): Promise<void>
  stop(): Promise<void>
}

const START_MS = Date.UTC(2026, 0, 1)
const PATIENCE_MS = 15_000
const STEP_MS = 20
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
  const { chats: names = ['telegram', 'discord', 'slack'], keys = {}, toml = '', files = {} } = options
  let clock = testClock(START_MS)
  const [telegram, discord, slack] = await Promise.all([telegramChat(), discordChat(() => clock.nowMs()), slackChat()])
  const chats = { telegram, discord, slack }
  const used = names.map((name) => chats[name])
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-chats-'))
  const configFile = join(dataDir, 'config.toml')
  writeFileSync(configFile, [BASE, toml, ...used.map((chat) => sectionOf(chat, keys))].join('\n'), { mode: 0o600 })
  for (const [path, text] of Object.entries(files)) {
    const file = join(dataDir, 'workspace', path)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, text)
  }
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
  const idle = async (): Promise<void> => {
    const { store } = running().runtime
    let quiet = 0
    await until(async () => {
      const [inbox, outbox] = await Promise.all([store.inbox.counts(), store.outbox.counts()])
      const busy = inbox.pending + inbox.running + outbox.queued + outbox.sending + outbox.failed
      quiet = busy === 0 ? quiet + 1 : 0
      return quiet >= QUIET_ROUNDS
    })
  }
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
    await until(() => isDown)
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
    down,
    up,
    async stop() {
      await down()
      await Promise.all(Object.values(chats).map((chat) => chat.close()))
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

const DAEMON = { env: {}, profile: 'test', version: '0.0.0', host: '127.0.0.1', port: 0 }

/** What goes wrong on purpose is not for whoever runs the tests. */
const BASE = '[log]\nlevel = "error"\n[gateway]\nrequire_pairing = false\n'

const sectionOf = ({ name, config }: Chat, keys: object): string =>
  [`[channels_config.${name}]`, ...Object.entries({ ...config, ...keys }).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)].join(
    '\n',
  )

const notRunning = (): never => {
  throw new Error('the daemon is down')
}
