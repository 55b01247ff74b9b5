/** The interfaces between the tool and the drivers of browsers. */
import type { Finding, ToolContext } from '@sluice/sdk'
import type { Action, ActionName } from './actions.ts'

export interface Driver {
  /**
   * Performs one action for the client of the call and describes the result. Throws an `AppError` when the action is refused
   * or fails. Clients never see each other's pages, cookies or results.
   */
  run(action: Action, call: ToolContext): Promise<string>
  /** Starts the browser once, for `sluice doctor`. */
  check(signal: AbortSignal): Promise<readonly Finding[]>
  /** Ends everything the driver started. May be called twice. */
  close(): Promise<void>
}

/** A driver that is skipped when it does not work on this machine. */
export interface OptionalDriver extends Driver {
  /** Returns the reason why the driver cannot work here. A quick check that opens no page. */
  unusableReason(signal: AbortSignal): Promise<string | undefined>
}

export interface Backend extends Driver {
  /** The value of `[browser] backend`. */
  readonly name: string
  readonly actions: readonly ActionName[]
}

/** Returns a backend that loads its driver with the first action, so that an unused browser costs nothing. */
export function lazyBackend(name: string, actions: readonly ActionName[], load: () => Promise<Driver>): Backend {
  let loading: Promise<Driver> | undefined
  const driver = () => {
    loading ??= load()
    return loading
  }
  return {
    name,
    actions,
    run: async (action, call) => (await driver()).run(action, call),
    check: async (signal) => (await driver()).check(signal),
    close: async () => (await loading)?.close(),
  }
}
