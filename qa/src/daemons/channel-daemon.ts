/** Runs a daemon with webhook channels in this process: with a real HTTP server and store, and a clock that only tests advance. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Daemon, startDaemon } from '@sluice/daemon'
import { withMessage } from '@sluice/delivery'
import type { Feature, InboxEntry } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import type { SectionValues } from '@sluice/testkit/section-values'
import type { SentRequest } from '@sluice/testkit/vector'
import { sectionToml } from './section-toml.ts'
import { type Answered, sendRequest } from './send-request.ts'

/** The keys of each `[channels_config.…]` section. */
export type ChannelSections = Readonly<Record<string, SectionValues>>

export interface ChannelDaemonOptions {
  readonly features: readonly Feature[]
  readonly channels: ChannelSections
  /** Seconds since 1970. */
  readonly nowSecs: number
}

export interface ChannelDaemon {
  readonly clock: TestClock
  send(request: SentRequest): Promise<Answered>
  /** Waits until no message and no reply is left to process, then resolves to all stored messages, oldest first. */
  kept(): Promise<readonly InboxEntry[]>
  /** Stops the daemon and starts it again on the same data, with the clock advanced by `laterMs`. */
  restart(laterMs?: number): Promise<void>
  stop(): Promise<void>
}

const IDLE_MS_MAX = 30_000

export async function startChannelDaemon({ features, channels, nowSecs }: ChannelDaemonOptions): Promise<ChannelDaemon> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-channels-'))
  const configFile = join(dataDir, 'config.toml')
  writeFileSync(configFile, tomlOf(channels), { mode: 0o600 })
  const start = (clock: TestClock): Promise<Daemon> =>
    startDaemon({ features, dataDir, configFile, env: {}, profile: 'test', version: '0.0.0', clock, host: '127.0.0.1', port: 0 })
  let clock = testClock(nowSecs * 1000)
  let daemon = await start(clock)

  return {
    get clock() {
      return clock
    },
    send: (request) => sendRequest(daemon.url, request),
    async kept() {
      const { inbox, outbox } = daemon.runtime.store
      const endMs = performance.now() + IDLE_MS_MAX
      for (;;) {
        const [{ pending, running }, { queued, sending, failed }] = [await inbox.counts(), await outbox.counts()]
        if (pending + running + queued + sending + failed === 0) break
        if (performance.now() > endMs) throw new Error('Messages or replies were still waiting after 30 s.')
        await new Promise((resume) => setTimeout(resume, 2))
      }
      const entries = await Promise.all((await inbox.list({ limit: 1000 })).map(({ number }) => inbox.get(number)))
      const found = entries.filter((entry) => entry !== undefined).reverse()
      return Promise.all(found.map((entry) => withMessage(daemon.runtime.snapshot().channels, entry)))
    },
    async restart(laterMs = 0) {
      await daemon.stop()
      clock = testClock(clock.nowMs() + laterMs)
      daemon = await start(clock)
    },
    async stop() {
      await daemon.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Refused requests are part of the tests, so their warnings are not logged. */
const BASE = '[log]\nlevel = "error"\n[provider]\nkind = "offline"\n'

const tomlOf = (channels: ChannelSections): string =>
  BASE +
  Object.entries(channels)
    .map(([name, keys]) => sectionToml(name, keys))
    .join('')
