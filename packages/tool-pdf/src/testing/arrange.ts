/** The feature built for a test, with what it offers at hand. */
import type { Host } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { expect, onTestFinished } from 'vitest'
import feature from '../index.ts'

/** For what a worker does in its own time. */
const realTime: Host['clock'] = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const timer = setTimeout(resolve, ms)
      signal?.addEventListener('abort', () => {
        clearTimeout(timer)
        resolve()
      })
    }),
}

export interface ArrangeOptions {
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  /** Time stands still unless this is set. */
  readonly realTime?: true
}

export function arrange({ files = {}, realTime: isReal }: ArrangeOptions = {}) {
  const host: TestHost = testHost({ workspace: memoryWorkspace(files) })
  const parts = feature.build(isReal ? { ...host, clock: realTime } : host, {})
  const [tool] = parts.tools ?? []
  const { pdfText } = parts.services ?? {}
  const { close, check } = parts
  if (!tool || !pdfText || !close || !check) throw new Error('a part of the feature is missing')
  onTestFinished(async () => close())
  return {
    host,
    close,
    check,
    /** Runs the tool as the executor does: input first through the schema. */
    run: async (input: object, signal?: AbortSignal) => tool.run(v.parse(tool.input, input), toolContext(signal)),
    read: async (pdf: Uint8Array, { pages, signal = new AbortController().signal }: { pages?: string; signal?: AbortSignal } = {}) =>
      pdfText(pdf, { signal, ...(pages !== undefined && { pages }) }),
    tool,
    /** Resolves once a worker has a PDF to read and its time runs. */
    whileReading: async () => expect.poll(() => host.clock.sleeping).toBeGreaterThan(1),
  }
}
