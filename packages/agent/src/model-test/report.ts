/** The options of the tests of a model, and their report. */
import type { ProviderSettings, Usage } from '@sluice/sdk'
import type { ModelTestName } from './test-names.ts'

export interface ModelTestRequest {
  /** The agent whose limits apply; default: the main agent. */
  readonly agent?: string | undefined
  /** The endpoint and its model, which need not be configured. */
  readonly settings: ProviderSettings
  /** Default: the tests without the tasks. */
  readonly tests?: readonly ModelTestName[] | undefined
  readonly signal: AbortSignal
  onResult(result: ModelTestResult): void
}

export interface ModelTestReport {
  /** The id under which the cost is recorded, as that of a turn with the source `models`. */
  readonly turnId: string
  readonly usage: Usage
  /** The inputs that the model refused during the tests, such as `does not support tools`. */
  readonly limits: readonly string[]
}

export interface ModelTestResult {
  readonly test: ModelTestName
  /** `not_supported`: the model answers and cannot do this. */
  readonly outcome: 'ok' | 'failed' | 'not_supported'
  /** The act of the model, or the reason in the words of the provider. */
  readonly detail: string
  readonly tookMs: number
  readonly usage: Usage
}
