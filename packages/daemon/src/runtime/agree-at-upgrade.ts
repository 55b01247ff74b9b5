/** Keeps the procedures in the workspace of an earlier release running: at the upgrade, they count as agreed to. */

import type { LoadedConfig } from '@sluice/config'
import { sopSettings } from '@sluice/runtime'
import type { Clock, Logger, Store } from '@sluice/sdk'
import { createAgreements } from '@sluice/sop'

export interface UpgradeSources {
  readonly store: Pick<Store, 'keyValue'>
  readonly config: LoadedConfig
  readonly dataDir: string
  readonly clock: Clock
  readonly log: Logger
}

/** Must run before the agent does: a procedure that the agent writes later waits for an operator. */
export async function agreeAtUpgrade({ store, config, dataDir, clock, log }: UpgradeSources): Promise<void> {
  const agreements = createAgreements(store.keyValue('sop'))
  if (!(await agreements.isUpgrade())) return
  const { loadSops } = await import('@sluice/sop/load-sops')
  const settings = sopSettings(config, dataDir)
  const { waiting } = await loadSops({ ...settings, agreed: new Map(), nowMs: clock.nowMs() })
  for (const { folder, hash } of waiting) await agreements.agree(folder, hash)
  await agreements.upgraded()
  if (waiting.length > 0)
    log.warn('The procedures in the workspace keep running. A change of one of them waits for an operator.', {
      procedures: waiting.length,
      fix: 'sluice sop adopt',
    })
}
