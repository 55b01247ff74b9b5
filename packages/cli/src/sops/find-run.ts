/** Finds a run of a procedure by its id, or by a beginning of it that no other recent run shares. */
import { AppError, type SopRun, type Store } from '@sluice/sdk'
import { findByBeginning } from '../find-by-beginning.ts'

/** How many runs, newest first, a beginning is looked for in. */
const RECENT_MAX = 500

/** Throws `not_found` if there is no such run, `invalid_request` if several begin with the text. */
export async function findRun({ sops }: { readonly sops: Pick<Store['sops'], 'get' | 'runs'> }, id = ''): Promise<SopRun> {
  const exact = await sops.get(id)
  if (exact) return exact
  const found = findByBeginning(id, await sops.runs({ limit: RECENT_MAX }), (run) => run.id, 'runs')
  if (!found) throw new AppError('not_found', `There is no run ${id}: 'sluice sop runs' lists them`)
  return found
}
