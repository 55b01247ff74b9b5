/** Two processes on one store, as two runtimes on one data directory: each owns half of the shards. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scriptedModel } from '@sluice/agent/testing/scripted-model'
import {
  type Channel,
  defineFeature,
  defineTool,
  type Inbound,
  type ShardRange,
  type Store,
  type StoreChange,
  shardOf,
  shardOfConversation,
} from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import * as v from 'valibot'
import { afterEach, beforeEach, vi } from 'vitest'
import { type OpenRuntime, openRuntime } from '../runtime/open-runtime.ts'
import { startWork, type Work } from '../start-work.ts'

export const LOW: ShardRange = { from: 0, to: 127 }
export const HIGH: ShardRange = { from: 128, to: 255 }

export interface Process extends Work {
  readonly runtime: OpenRuntime
  /** The texts that this process sent. */
  readonly sent: readonly string[]
  /** The texts of the messages that the model of this process was asked about, and the calls of its tool. */
  readonly asked: readonly string[]
  readonly acted: readonly string[]
  receive(message: Partial<Inbound>): Promise<void>
  /** Reports a change of the store, as a store does that knows which shards a commit changed. */
  changed(change: StoreChange): void
  /** Stops without an orderly end: from now on this process has no lease. */
  stop(): Promise<void>
}

export interface ProcessOptions {
  readonly shards: ShardRange
  /** Sends a text. Resolves when the platform has it. */
  readonly send?: (text: string) => Promise<void>
  /** Answers a prompt. */
  readonly answer?: (prompt: string) => Promise<string>
  /** Carries out a call of the tool `act`. */
  readonly act?: () => Promise<string>
  readonly listen?: Channel['listen']
  /** More of the configuration. */
  readonly config?: string
}

export let clock: TestClock
let folder: string
const open: Process[] = []

/** Makes a data directory for each test of the file that calls it. */
export function setUpProcesses(): void {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'processes-'))
    clock = testClock()
  })
  afterEach(async () => {
    for (const process of open.splice(0)) await process.stop()
    rmSync(folder, { recursive: true, force: true })
  })
}

/** Writes a procedure into the data directory. */
export function writeProcedure(name: string, toml: string, steps: string): void {
  const home = join(folder, 'sops', name)
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'SOP.toml'), toml)
  writeFileSync(join(home, 'SOP.md'), steps)
}

/** Starts a process that owns these shards. */
export async function startProcess({ shards, send, answer, act, listen, config = '' }: ProcessOptions): Promise<Process> {
  const sent: string[] = []
  const asked: string[] = []
  const acted: string[] = []
  const channel: Channel = {
    name: 'x',
    allow: ['*', 'ann'],
    limits: { text: 1000, unit: 'utf16' },
    async send(_to, { text }) {
      await send?.(text)
      sent.push(text)
      return { id: `sent-${sent.length}` }
    },
    ...(listen && { listen }),
  }
  const model = scriptedModel([
    async ({ prompt }) => {
      const text = JSON.stringify(prompt.at(-1))
      asked.push(text)
      return { text: (await answer?.(text)) ?? 'an answer' }
    },
  ])
  const tool = defineTool({
    name: 'act',
    description: 'Acts.',
    input: v.object({}),
    risk: 'execute',
    egress: false,
    untrusted: false,
    async run() {
      acted.push('act')
      return (await act?.()) ?? 'acted'
    },
  })
  const features = [
    defineFeature({ id: 'provider-offline', build: () => ({ providers: [{ kinds: ['offline'], load: async () => model }] }) }),
    defineFeature({ id: 'x-channel', build: () => ({ channels: [channel], tools: [tool] }) }),
  ]
  const configFile = join(folder, 'config.toml')
  writeFileSync(configFile, `[security.policy]\nauto_approve = ["act"]\n[sop]\nmax_concurrent_total = 100\n${config}`)
  const options = { features, dataDir: folder, configFile, env: {}, profile: 'test', version: '0', quiet: true, clock, shards: [shards] }
  const runtime = await openRuntime(options)
  const followers: ((change: StoreChange) => void)[] = []
  const { onChange } = runtime.store
  const watched: Pick<Store, 'onChange'> = {
    onChange(listener) {
      followers.push(listener)
      return onChange(listener)
    },
  }
  Object.assign(runtime.store, watched)
  const work = await startWork(runtime, new AsyncDisposableStack())
  let stopped: Promise<void> | undefined
  const stop = async () => {
    await work.deliveries.stop(0)
    await work.procedures.stop(0)
    await runtime.close(0)
  }
  let received = 0
  const process: Process = {
    ...work,
    runtime,
    sent,
    asked,
    acted,
    async receive(message) {
      const to = message.to ?? conversationIn(shards)
      const inbound: Inbound = { id: `${shards.from}-${++received}`, account: 'bot', sender: 'ann', to, text: 'hello', ...message }
      const request = { raw: null, verified: { by: 'test' }, receivedAtMs: clock.nowMs(), messages: [inbound] }
      await work.deliveries.receive(channel, request)
    },
    changed: (change) => {
      for (const follow of followers) follow(change)
    },
    stop: () => (stopped ??= stop()),
  }
  open.push(process)
  return process
}

/** Returns a conversation of the channel whose shard is in the range. */
export const conversationIn = (range: ShardRange): { readonly to: string } => ({
  to: firstIn(range, 'room', (to) => shardOfConversation({ channel: 'x', account: 'bot', to: { to } })),
})

/** Returns an id whose shard is in the range. */
export const idIn = (range: ShardRange, name: string): string => firstIn(range, name, shardOf)

function firstIn({ from, to }: ShardRange, name: string, shardOfName: (name: string) => number): string {
  for (let number = 0; ; number++) {
    const shard = shardOfName(`${name}-${number}`)
    if (shard >= from && shard <= to) return `${name}-${number}`
  }
}

/** Waits until the condition holds, while the processes notice each other's writes. */
export const eventually = (check: () => void | Promise<void>): Promise<void> =>
  vi.waitFor(
    async () => {
      await clock.advance(1000)
      await check()
    },
    { timeout: 20_000, interval: 10 },
  )
