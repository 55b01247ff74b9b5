/**
 * `sluice sop waiting`, `accept` and `adopt`: procedures in the workspace, where the agent can write. One that is new or changed is
 * not loaded until an operator agrees to exactly its content; an adopted one leaves the workspace.
 */
import { lstat, mkdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { AppError, oneLine } from '@sluice/sdk'
import { createAgreements, type WaitingSop } from '@sluice/sop'
import type { CliContext } from '../context.ts'
import { printBlock } from '../deliveries/show.ts'
import { TEXT_CHARS_MAX } from '../deliveries/widths.ts'
import { type OpenSops, openSops, sopsInWorkspace } from '../sops/open-sops.ts'
import { withStore } from '../with-store.ts'

/** So much of a hash is shown and demanded. */
const HASH_CHARS = 16

export async function waiting(context: CliContext): Promise<number> {
  const { out, json, args } = context
  const sops = await openSops(context)
  const shown = args[0] === undefined ? sops.waiting : [named(sops, args[0])]
  if (json) {
    out.json(shown.map(({ folder, hash, isChanged, toml, md }) => ({ folder, hash: short(hash), changed: isChanged, toml, md })))
    return 0
  }
  const [only] = shown
  if (!only) out.print('no procedure waits for an operator')
  else if (args[0] !== undefined) {
    printBlock(out, join(only.folder, 'SOP.toml'), only.toml ?? '(missing or unreadable)')
    printBlock(out, join(only.folder, 'SOP.md'), only.md ?? '(missing or unreadable)')
    out.print('')
    out.print(`to load it as it is shown: sluice sop accept ${basename(only.folder)} ${short(only.hash)}`)
  } else {
    out.table(
      ['folder', 'why', 'hash'],
      shown.map(({ folder, hash, isChanged }) => [oneLine(basename(folder), TEXT_CHARS_MAX), isChanged ? 'changed' : 'new', short(hash)]),
    )
    out.print("'sluice sop waiting <folder>' shows one and the command that agrees to it")
  }
  return 0
}

export const accept = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json, args } = context
    const { folder, hash } = named(await openSops(context), args[0] ?? '')
    if ((args[1] ?? '').length < HASH_CHARS || !hash.startsWith(args[1] ?? ''))
      throw new AppError(
        'conflict',
        `${folder} has the hash ${short(hash)} now, not '${args[1]}'; look at it again with 'sluice sop waiting'`,
      )
    await createAgreements(store.keyValue('sop')).agree(folder, hash)
    if (json) out.json({ accepted: folder, hash: short(hash) })
    else out.print(`accepted ${folder}; a running daemon loads it within a second`)
    return 0
  })

export const adopt = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json, args } = context
    const { folder, agreed } = await openSops(context)
    const agreements = createAgreements(store.keyValue('sop'))
    const found = (await sopsInWorkspace(context)).filter((sop) => args[0] === undefined || basename(sop.folder) === args[0])
    const moved: string[] = []
    for (const sop of found.filter((each) => agreed.get(each.folder) === each.hash)) {
      moved.push(await move(sop, folder))
      await agreements.forget(sop.folder)
    }
    const left = found.filter((sop) => agreed.get(sop.folder) !== sop.hash).map((sop) => sop.folder)
    if (json) out.json({ adopted: moved, waiting: left })
    else {
      for (const to of moved) out.print(`adopted ${to}`)
      if (moved.length === 0) out.print('there is nothing to adopt')
      for (const path of left) out.warn(`${path} stays: agree to it first (sluice sop waiting)`)
    }
    return 0
  })

/** Writes the content that was agreed to; moving a file of the workspace could move a link, or what it has become meanwhile. */
async function move({ folder: from, toml, md }: WaitingSop, folder: string): Promise<string> {
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
  if (!(await lstat(from)).isDirectory()) return to // a link to another folder, whose files are not to be removed
  for (const name of ['SOP.toml', 'SOP.md']) await rm(join(from, name), { force: true })
  await rmdir(from).catch(() => undefined) // other files of the folder stay where they are
  return to
}

function named({ waiting: all, agreed }: OpenSops, name: string): WaitingSop {
  const found = all.find(({ folder }) => basename(folder) === name)
  if (found) return found
  const isAgreed = [...agreed.keys()].some((folder) => basename(folder) === name)
  throw new AppError(
    'not_found',
    isAgreed ? `'${name}' is agreed to as it is` : `no procedure in '${name}' waits; 'sluice sop waiting' lists those that do`,
  )
}

const short = (hash: string): string => hash.slice(0, HASH_CHARS)
