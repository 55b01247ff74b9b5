/**
 * `sluice sop waiting`, `accept` and `adopt`: procedures in the workspace, where the agent can write. A new or changed procedure is
 * loaded only after an operator has accepted exactly its content. An adopted procedure moves out of the workspace.
 */
import { lstat, mkdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { AppError, oneLine } from '@sluice/sdk'
import { createAgreements, type WaitingSop } from '@sluice/sop'
import type { CliContext } from '../context.ts'
import { printBlock, TEXT_CHARS_MAX } from '../print-details.ts'
import { type OpenSops, openSops, sopsInWorkspace } from '../sops/open-sops.ts'
import { withStore } from '../with-store.ts'

/** The number of characters of a hash that are printed, and required as an argument. */
const HASH_CHARS = 16

export async function waiting(context: CliContext): Promise<number> {
  const { out, json, args } = context
  const sops = await openSops(context)
  const shown = args[0] === undefined ? sops.waiting : [findWaiting(sops, args[0])]
  if (json) {
    out.json(shown.map(({ folder, hash, isChanged, toml, md }) => ({ folder, hash: shortHash(hash), changed: isChanged, toml, md })))
    return 0
  }
  const [only] = shown
  if (!only) out.print('no procedure waits for an operator')
  else if (args[0] !== undefined) {
    printBlock(out, join(only.folder, 'SOP.toml'), only.toml ?? '(missing or unreadable)')
    printBlock(out, join(only.folder, 'SOP.md'), only.md ?? '(missing or unreadable)')
    out.print('')
    out.print(`to load it as it is shown: sluice sop accept ${basename(only.folder)} ${shortHash(only.hash)}`)
  } else {
    out.table(
      ['folder', 'why', 'hash'],
      shown.map(({ folder, hash, isChanged }) => [
        oneLine(basename(folder), TEXT_CHARS_MAX),
        isChanged ? 'changed' : 'new',
        shortHash(hash),
      ]),
    )
    out.print("'sluice sop waiting <folder>' shows one and the command that accepts it")
  }
  return 0
}

export const accept = (context: CliContext): Promise<number> =>
  withStore(context, async (store) => {
    const { out, json, args } = context
    const [name = '', givenHash = ''] = args
    const { folder, hash } = findWaiting(await openSops(context), name)
    if (givenHash.length < HASH_CHARS || !hash.startsWith(givenHash))
      throw new AppError(
        'conflict',
        `${folder} has the hash ${shortHash(hash)} now, not '${givenHash}'; look at it again with 'sluice sop waiting'`,
      )
    await createAgreements(store.keyValue('sop')).agree(folder, hash)
    if (json) out.json({ accepted: folder, hash: shortHash(hash) })
    else out.print(`accepted ${folder}; a running daemon loads it within a second`)
    return 0
  })

export const adopt = (context: CliContext): Promise<number> =>
  withStore(context, async (store) => {
    const { out, json, args } = context
    const { folder, agreed } = await openSops(context)
    const agreements = createAgreements(store.keyValue('sop'))
    const selected = (await sopsInWorkspace(context)).filter((sop) => args[0] === undefined || basename(sop.folder) === args[0])
    const isAccepted = (sop: WaitingSop) => agreed.get(sop.folder) === sop.hash
    const adopted: string[] = []
    for (const sop of selected.filter(isAccepted)) {
      adopted.push(await moveToFolder(sop, folder))
      await agreements.forget(sop.folder)
    }
    const left = selected.filter((sop) => !isAccepted(sop)).map((sop) => sop.folder)
    if (json) out.json({ adopted, waiting: left })
    else {
      for (const path of adopted) out.print(`adopted ${path}`)
      if (adopted.length === 0) out.print('there is nothing to adopt')
      for (const path of left) out.warn(`${path} stays: accept it first (sluice sop waiting)`)
    }
    return 0
  })

/**
 * Writes the accepted content to a new folder, then removes the files in the workspace. It does not rename them: the agent could have
 * changed a file meanwhile, or replaced it with a link.
 */
async function moveToFolder({ folder: from, toml, md }: WaitingSop, folder: string): Promise<string> {
  const to = join(folder, basename(from))
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    await mkdir(to, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new AppError('conflict', `${to} exists already: remove one of the two procedures`)
  }
  if (toml !== null) await writeFile(join(to, 'SOP.toml'), toml)
  if (md !== null) await writeFile(join(to, 'SOP.md'), md)
  if (!(await lstat(from)).isDirectory()) return to // A link: the files in the linked folder stay.
  for (const name of ['SOP.toml', 'SOP.md']) await rm(join(from, name), { force: true })
  await rmdir(from).catch(() => undefined) // A folder with other files stays.
  return to
}

/** Returns the waiting procedure in the folder. Throws `not_found` if none waits there. */
function findWaiting({ waiting: all, agreed }: OpenSops, name: string): WaitingSop {
  const found = all.find(({ folder }) => basename(folder) === name)
  if (found) return found
  const isAccepted = [...agreed.keys()].some((folder) => basename(folder) === name)
  throw new AppError(
    'not_found',
    isAccepted ? `'${name}' is accepted as it is` : `no procedure in '${name}' waits; 'sluice sop waiting' lists the waiting procedures`,
  )
}

const shortHash = (hash: string): string => hash.slice(0, HASH_CHARS)
