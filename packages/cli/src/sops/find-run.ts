/** Finds a run of a procedure by its id, or by a beginning of it that no other recent run shares. */
import { AppError, type SopRun, type Store } from '@sluice/sdk'

/** How many runs, newest first, a beginning is looked for in. */
const RECENT_MAX = 500

/** Throws `not_found` if there is no such run, `invalid_request` if several begin with the text. */
export async function findRun({ sops }: { readonly sops: Pick<Store['sops'], 'get' | 'runs'> }, id = ''): Promise<SopRun> {
  const exact = await sops.get(id)
  if (exact) return exact
  const alike = id === '' ? [] : (await sops.runs({ limit: RECENT_MAX })).filter((run) => run.id.startsWith(id))
  const [only, ...more] = alike
  if (!only) throw new AppError('not_found', `There is no run ${id}: 'sluice sop runs' lists them`)
  if (more.length > 0) {
    const ids = alike.slice(0, 5).map((run) => run.id)
    throw new AppError('invalid_request', `${alike.length} runs begin with ${id}, such as ${ids.join(', ')}: type more of the id`)
  }
  return only
}
