/** The port of what drives a browser. */
import type { Finding, ToolContext } from '@sluice/sdk'
import type { Action, ActionName } from './actions.ts'

export interface Driver {
  /**
   * Does one action for the client of the call and says what came of it. Throws an `AppError` for what it refuses and for
   * what failed. What one client does never shows to another.
   */
  run(action: Action, call: ToolContext): Promise<string>
  /** Proves that it starts, for `sluice doctor`. */
  check(signal: AbortSignal): Promise<readonly Finding[]>
  /** Ends everything it started; idempotent. */
  close(): Promise<void>
}

/** A driver that can be passed over for another one. */
export interface OptionalDriver extends Driver {
  /** Says why it cannot work on this machine; a quick look that opens no page. */
  unusable(signal: AbortSignal): Promise<string | undefined>
}

export interface Backend extends Driver {
  /** The value of `[browser] backend`. */
  readonly name: string
  readonly actions: readonly ActionName[]
}
