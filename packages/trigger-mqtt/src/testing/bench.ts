/** A trigger at work in a test: on a real clock whose long waits are cut short, with all it logs. */
import type { Clock, KeyValue } from '@sluice/sdk'
import { type LogLine, testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { vi } from 'vitest'
import { mqttSection } from '../config.ts'
import { createTrigger } from '../trigger.ts'
import type { FakeSops } from './fake-sops.ts'

export interface Bench {
  readonly logs: readonly LogLine[]
  /** The waits that were asked for, in milliseconds. */
  readonly waits: readonly number[]
  readonly keyValue: KeyValue
  said(message: string): readonly LogLine[]
  close(): Promise<void>
}

export interface BenchOptions {
  readonly sops: FakeSops | (() => FakeSops | undefined)
  readonly keyValue?: KeyValue
  /** Beside `enabled` and `broker_url`. */
  readonly config?: object
  /** Shorter than a configuration may have it. */
  readonly keepAliveSecs?: number
  /** What is left of a wait, at most. */
  readonly waitMsMax?: number
}

export async function openTrigger(brokerUrl: string, options: BenchOptions): Promise<Bench> {
  const { sops, keyValue = memoryKeyValue(), config = {}, keepAliveSecs, waitMsMax = 100 } = options
  const waits: number[] = []
  const clock: Clock = {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    sleep(ms, signal) {
      waits.push(ms)
      return waitUpTo(Math.min(ms, waitMsMax), signal)
    },
  }
  const engine = () => (typeof sops === 'function' ? sops() : sops)
  const base = testHost({ keyValue })
  const host = { ...base, clock, service: () => engine() as never }
  const parsed = v.parse(mqttSection.schema, { enabled: true, broker_url: brokerUrl, ...config })
  const parts = createTrigger(host, keepAliveSecs === undefined ? parsed : { ...parsed, keep_alive_secs: keepAliveSecs })
  await parts.register?.(new AbortController().signal)
  return {
    logs: base.logs,
    waits,
    keyValue,
    said: (message) => base.logs.filter((line) => line.message === message),
    close: async () => parts.close?.(),
  }
}

const waitUpTo = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })

/** Waits for something that comes soon, and looks often. */
export const soon = (check: () => void | Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 5000, interval: 5 })
