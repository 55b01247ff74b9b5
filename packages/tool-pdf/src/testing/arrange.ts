/** Builds the feature with a test host and returns the parts that tests use. */
import { systemClock } from '@sluice/kit'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { expect, onTestFinished } from 'vitest'
import feature from '../index.ts'

export interface ArrangeOptions {
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  /** Uses the system clock. Without it, time passes only when the test advances it. */
  readonly realTime?: true
}

export function arrange({ files = {}, realTime }: ArrangeOptions = {}) {
  const host: TestHost = testHost({ workspace: memoryWorkspace(files) })
  const parts = feature.build(realTime ? { ...host, clock: systemClock } : host, {})
  const [tool] = parts.tools ?? []
  const { pdfText } = parts.services ?? {}
  const { close, check } = parts
  if (!tool || !pdfText || !close || !check) throw new Error('a part of the feature is missing')
  onTestFinished(async () => close())
  return {
    host,
    close,
    check,
    /** Runs the tool like the tool executor does, which parses the input by the schema first. */
    run: async (input: object, signal?: AbortSignal) => tool.run(v.parse(tool.input, input), toolContext(signal, host.by)),
    /** Calls the service that other features use. */
    read: async (pdf: Uint8Array, { pages, signal = new AbortController().signal }: { pages?: string; signal?: AbortSignal } = {}) =>
      pdfText(pdf, { signal, ...(pages !== undefined && { pages }) }),
    tool,
    /** Resolves once a worker reads a PDF and its time limit runs. */
    whileReading: async () => expect.poll(() => host.clock.sleeping).toBeGreaterThan(1),
  }
}
