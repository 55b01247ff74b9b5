/** Test support: a running trigger on a real clock whose long waits are shortened. */
import type { Clock, KeyValue } from '@sluice/sdk'
import { type LogLine, testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { vi } from 'vitest'
import { mqttSection } from '../config.ts'
import { MqttTrigger } from '../trigger.ts'
import type { FakeSops } from './fake-sops.ts'

export interface OpenTrigger {
  readonly logs: readonly LogLine[]
  /** The durations passed to `sleep`, in milliseconds. */
  readonly waits: readonly number[]
  readonly keyValue: KeyValue
  logged(message: string): readonly LogLine[]
  close(): Promise<void>
  /** Closes the trigger, and returns the sum of the waits that it asked for since: the longest that closing takes. */
  closeMs(): Promise<number>
}

export interface TriggerOptions {
  readonly sops: FakeSops | (() => FakeSops | undefined)
  readonly keyValue?: KeyValue
  /** Members in addition to `enabled` and `broker_url`. */
  readonly config?: object
  /** May be shorter than the configuration allows. */
  readonly keepAliveSecs?: number
  /** The longest real wait. */
  readonly waitMsMax?: number
}

export async function openTrigger(brokerUrl: string, options: TriggerOptions): Promise<OpenTrigger> {
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
  const trigger = new MqttTrigger(host, keepAliveSecs === undefined ? parsed : { ...parsed, keep_alive_secs: keepAliveSecs })
  const parts = trigger.parts()
  await parts.register?.(new AbortController().signal)
  const close = async () => parts.close?.()
  return {
    logs: base.logs,
    waits,
    keyValue,
    logged: (message) => base.logs.filter((line) => line.message === message),
    close,
    async closeMs() {
      const before = waits.length
      await close()
      return waits.slice(before).reduce((sum, ms) => sum + ms, 0)
    },
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

/** Waits up to twenty seconds until `check` passes. */
export const soon = (check: () => void | Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 20_000, interval: 5 })
