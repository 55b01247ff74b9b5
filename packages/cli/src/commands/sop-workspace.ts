/**
 * `sluice sop waiting`, `accept` and `adopt`: procedures in the workspace, where the agent can write. A new or changed procedure is
 * loaded only after an operator has accepted exactly its content. An adopted procedure moves out of the workspace.
 */
import { basename, join } from 'node:path'
import { shellWord } from '@sluice/kit'
import { oneLine } from '@sluice/sdk'
import type { ShownWaiting } from '@sluice/sop/shown-definition'
import { apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext, Output } from '../context.ts'
import { limitOfAll } from '../option-values.ts'
import { printBlock, TEXT_CHARS_MAX } from '../print-details.ts'

const NEEDS = { config: true } as const

export async function waiting(context: CliContext): Promise<number> {
  const { out, json, args } = context
  const limit = limitOfAll(context)
  return withApi(
    context,
    async (api) => {
      const { waiting: all } = await api.get<{ waiting: readonly ShownWaiting[] }>('/api/sops/waiting', { folder: args[0] })
      const shown = all.slice(0, limit)
      const [only] = shown
      if (json) out.json(shown)
      else if (!only) out.print('no procedure waits for an operator')
      else if (args[0] !== undefined) printWaiting(out, only)
      else {
        out.table(
          ['folder', 'why'],
          shown.map(({ folder, changed }) => [oneLine(basename(folder), TEXT_CHARS_MAX), changed ? 'changed' : 'new']),
        )
        out.hint("'sluice sop waiting <folder>' shows one and the command that accepts it")
      }
      if (all.length > shown.length) out.warn(`there are ${all.length - shown.length} more: raise --limit`)
      return 0
    },
    NEEDS,
  )
}

function printWaiting(out: Output, { folder, hash, toml, md }: ShownWaiting): void {
  printBlock(out, join(folder, 'SOP.toml'), toml ?? '(missing or unreadable)')
  printBlock(out, join(folder, 'SOP.md'), md ?? '(missing or unreadable)')
  out.print('')
  out.hint(`to load it as it is shown: sluice sop accept ${shellWord(basename(folder))} ${hash}`)
}

export const accept = async (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const { out, json, args } = context
      const [folder = '', hash = ''] = args
      const accepted = await api.post<{ accepted: string; hash: string }>(apiPath('/api/sops/waiting', folder, 'accept'), { hash })
      if (json) out.json(accepted)
      else out.print(`accepted ${accepted.accepted}${api.answerer === 'in process' ? '; the next daemon loads it' : ''}`)
      return 0
    },
    NEEDS,
  )

export const adopt = async (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const { out, json, args } = context
      const { adopted, waiting: left } = await api.post<{ adopted: string[]; waiting: string[] }>('/api/sops/adopt', { folder: args[0] })
      if (json) out.json({ adopted, waiting: left })
      else {
        for (const path of adopted) out.print(`adopted ${path}`)
        if (adopted.length === 0) out.print('there is nothing to adopt')
        for (const path of left) out.warn(`${path} stays: accept it first (sluice sop waiting)`)
      }
      return 0
    },
    NEEDS,
  )
