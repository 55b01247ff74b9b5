/** Checks the procedures: their definitions and the audit log. */
import type { LoadedConfig } from '@sluice/config'
import type { Clock, Store } from '@sluice/sdk'
import { createAgreements, type LibrarySettings, type SopTrigger, webhookProblem } from '@sluice/sop'
import { loadSops } from '@sluice/sop/load-sops'
import type { Snapshot } from '../features/snapshot.ts'
import { sopSettings } from '../procedures/sop-settings.ts'
import { type Check, fail, ok, warn } from './check.ts'
import { checkApprovalChats, hasChannels } from './check-channels.ts'

/** The parts of a runtime that procedures use. */
export interface ProceduresChecked {
  readonly dataDir: string
  readonly clock: Clock
  readonly store: Store
  config(): LoadedConfig
  snapshot(): Snapshot
}

export async function checkProcedures(runtime: ProceduresChecked): Promise<Check[]> {
  const settings = sopSettings(runtime.config(), runtime.dataDir)
  const [{ folder }] = settings.sources
  const agreed = await createAgreements(runtime.store.keyValue('sop')).all()
  const { definitions, problems, waiting } = await loadSops({ ...settings, agreed, nowMs: runtime.clock.nowMs() })
  const errors = problems.filter(({ severity }) => severity === 'error')
  const inWorkspace = definitions.filter((definition) => agreed.has(definition.folder))
  return [
    ...errors.map(({ file, line, message }) => fail('procedures', `${file}${line ? `:${line}` : ''}: ${message}`, 'sluice sop validate')),
    ...(errors.length === 0 ? [ok('procedures', `${definitions.length} in ${folder}`)] : []),
    ...definitions.flatMap(({ name, triggers }) => triggers.flatMap((trigger) => checkTrigger(name, trigger, settings))),
    ...waiting.map((found) => {
      const detail = `${found.folder} is ${found.isChanged ? 'changed' : 'new'} and is not loaded until an operator agrees to it`
      return warn('procedures', detail, 'sluice sop waiting')
    }),
    ...inWorkspace.map((definition) =>
      warn('procedures', `${definition.folder} is loaded from the workspace, where the agent can write`, 'sluice sop adopt'),
    ),
    // With a channel the check of channels asks.
    ...(definitions.length > 0 && !hasChannels(runtime.snapshot()) ? [checkApprovalChats(runtime.snapshot())] : []),
    ...(await checkWaiting(runtime)),
    await checkAudit(runtime),
  ]
}

/** Returns a warning for a webhook trigger whose secret is not set, and for one that takes the messages of operators alone. */
function checkTrigger(name: string, trigger: SopTrigger, settings: LibrarySettings): Check[] {
  if (trigger.type !== 'webhook') return []
  const { auth, path } = trigger
  const problem = webhookProblem(trigger, settings)
  const fix = auth ? `sluice config set sop.secrets.${auth.secrets[0]}` : 'sluice sop validate'
  return problem === undefined ? [] : [warn('procedures', `${name}: POST ${path}: ${problem}`, fix)]
}

/** Returns a warning while limits hold runs back. */
async function checkWaiting({ store, clock }: Pick<ProceduresChecked, 'store' | 'clock'>): Promise<Check[]> {
  const rows = await store.sops.waiting()
  if (rows.length === 0) return []
  const sops = [...Map.groupBy(rows, ({ sop }) => sop)].map(([sop, own]) => `${own.length} of ${sop}`)
  const oldestMs = Math.min(...rows.map(({ sinceMs }) => sinceMs))
  const detail = `runs wait for a free slot, the oldest for ${secondsSince(oldestMs, clock)} s: ${sops.join(', ')}`
  return [warn('procedures', detail, 'sluice sop runs --status waiting')]
}

const secondsSince = (ms: number, clock: Clock): number => Math.max(0, Math.round((clock.nowMs() - ms) / 1000))

async function checkAudit({ store }: Pick<ProceduresChecked, 'store'>): Promise<Check> {
  const { records, broken } = await store.sops.verify()
  if (!broken) return ok('audit log', `${records} records, none changed, missing or inserted`)
  return fail('audit log', `record ${broken.number}: ${broken.why}`, 'find out who changed sluice.db; a backup shows what was there')
}
