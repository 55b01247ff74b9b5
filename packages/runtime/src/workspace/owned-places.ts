/** Finds where the files of people lie below the folder of an agent in the data directory. */
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { ATTACHMENTS, type OwnedPlace, ownerFolder } from '@sluice/sdk'

/** Attachments of earlier releases that no conversation names. */
export const FORMER = 'former'
export const RESULTS = 'results'
export const POOLS = 'pools'
/** Says who owns the results of a conversation: an empty file named as its folder, in a folder for each owner. */
export const OWNERS = 'owners'

/** Returns the folder with the files of people for one agent. */
export const filesFolder = (dataDir: string, agent: string): string => join(dataDir, 'files', agent)

export const attachmentsOf = (files: string, owner: string): string => join(files, ATTACHMENTS, ownerFolder(owner))

export const resultsOf = (files: string, session: string): string => join(files, RESULTS, ownerFolder(session))

/** The folder with an empty file for each conversation of an owner that has results. `owner` is the name of its folder. */
export const ownersFolder = (files: string, owner: string): string => join(files, OWNERS, owner)

/** The folder with an empty file for each owner in the pool. */
export const poolFolder = (files: string, pool: string): string => join(files, POOLS, ownerFolder(pool))

const ROOTS = { attachments: ATTACHMENTS, results: RESULTS, former: FORMER } as const

export const placeNames = ({ root, names }: OwnedPlace): string[] => [ROOTS[root], ...names]

/** Resolves to the first place that has an entry, else to the first one; undefined without places. */
export async function chosenPlace(files: string, places: readonly OwnedPlace[]): Promise<OwnedPlace | undefined> {
  for (const place of places) {
    const isThere = await lstat(join(files, ...placeNames(place))).then(
      () => true,
      () => false,
    )
    if (isThere) return place
  }
  return places[0]
}
