/** An installation that an earlier release used goes on with the procedures in its workspace, as they stand there at the upgrade. */

import type { LoadedConfig } from '@sluice/config'
import type { Clock, Logger, Store } from '@sluice/sdk'
import { createAgreements } from '@sluice/sop'
import { sopSettings } from './sop-settings.ts'

export interface UpgradeDeps {
  readonly store: Pick<Store, 'keyValue'>
  readonly config: LoadedConfig
  readonly dataDir: string
  readonly clock: Clock
  readonly log: Logger
}

/** Call it before the agent does anything: what it writes from then on waits for an operator. */
export async function agreeAtUpgrade({ store, config, dataDir, clock, log }: UpgradeDeps): Promise<void> {
  const agreements = createAgreements(store.keyValue('sop'))
  if (!(await agreements.isUpgrade())) return
  const { loadSops } = await import('@sluice/sop/load-sops')
  const settings = sopSettings(config, dataDir)
  const { waiting } = await loadSops({ ...settings, agreed: new Map(), nowMs: clock.nowMs() })
  for (const { folder, hash } of waiting) await agreements.agree(folder, hash)
  await agreements.upgraded()
  if (waiting.length > 0)
    log.warn('The procedures in the workspace go on as they are. A change of one of them waits for an operator.', {
      procedures: waiting.length,
      fix: 'sluice sop adopt',
    })
}
