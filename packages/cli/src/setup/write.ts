/** Writes the choice into the configuration, and waits until a running daemon has taken it over. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ProviderConfig, parseConfig, providerSection, sectionsOf } from '@sluice/config'
import { setConfig } from '@sluice/config/edit'
import { starterConfig } from '@sluice/config/init-config'
import type { Status } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { askRunning } from '../probe-daemon.ts'
import type { ProviderChange } from './choice.ts'

/** A running daemon reads a changed file within about a second. */
const RELOAD_MS_MAX = 5000
const LOOK_MS = 100

/** How a running daemon got the change; `none` when no daemon runs. */
export type Reloaded = 'applied' | 'waiting' | 'none'

/** Prints the difference: the lines of `[provider]` before and after. */
export function printChanges({ out, configFile }: CliContext, changes: readonly ProviderChange[]): void {
  out.print(`[provider] in ${configFile}:`)
  for (const { key, before, after } of changes) {
    if (before !== null) out.print(out.style('red', `- ${key} = ${before}`))
    if (after !== null) out.print(out.style('green', `+ ${key} = ${after}`))
  }
}

/**
 * Makes all changes or none; comments stay and the key is encrypted. A new file begins as `sluice config init` writes it. Throws `conflict`
 * when another process has changed `[provider]` so that `changesFrom` returns other changes now: the new key could otherwise go to the
 * address that the other process has set.
 */
export async function writeChanges(
  context: CliContext,
  changes: readonly ProviderChange[],
  changesFrom: (current: ProviderConfig) => readonly ProviderChange[],
): Promise<void> {
  const check = async (text: string) => {
    const now = changesFrom((await parseConfig(context, text)).core(providerSection))
    if (JSON.stringify(now) !== JSON.stringify(changes)) throw changedMeanwhile(context)
  }
  const newFile = () => starterConfig(sectionsOf(context.features))
  await setConfig(
    context,
    changes.map(({ key, value }) => ({ path: `provider.${key}`, value })),
    { newFile, check },
  )
}

const changedMeanwhile = ({ configFile }: CliContext): AppError =>
  new AppError('conflict', `[provider] in ${configFile} has changed since setup read it. Nothing was written: run setup again.`)

/** Waits until the running daemon uses the model, at most five seconds. */
export async function untilReloaded(context: CliContext, model: string): Promise<Reloaded> {
  const untilMs = performance.now() + RELOAD_MS_MAX
  try {
    for (;;) {
      const status = await askRunning(context, (api) => api.get<Status>('/api/status'))
      if (!status) return 'none'
      if (status.models[0] === model) return 'applied'
      if (performance.now() > untilMs) return 'waiting'
      await sleep(LOOK_MS)
    }
  } catch (error) {
    if (error instanceof AppError) return 'waiting'
    throw error
  }
}
