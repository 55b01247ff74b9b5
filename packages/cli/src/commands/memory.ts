/** `sluice memory`: lists the memories of the agent, removes them, and gives them to another owner. */
import type { MemoriesMoved, MemoriesPage, Memory } from '@sluice/http/answers'
import { AppError, oneLine } from '@sluice/sdk'
import { type Api, apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import { readPages } from '../api/pages.ts'
import type { CliContext } from '../context.ts'
import { limitOfAll, PAGE_MAX, textOption } from '../option-values.ts'
import { printBlock, printFields, TEXT_CHARS_MAX } from '../print-details.ts'

export const list = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const { items, next } = await readMemories(api, textOption(context, 'owner'), limitOfAll(context))
    if (json) out.json(items.map(shown))
    else if (items.length === 0) out.print('no memories')
    else
      out.table(
        ['owner', 'key', 'category', 'updated', 'content'],
        items.map(({ owner, key, category, updated_at, content }) => [
          oneLine(owner, TEXT_CHARS_MAX),
          oneLine(key, TEXT_CHARS_MAX),
          oneLine(category, TEXT_CHARS_MAX),
          updated_at,
          oneLine(content, TEXT_CHARS_MAX),
        ]),
      )
    if (next !== null) out.warn('there are more: raise --limit')
    return 0
  })

export const show = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { content, ...fields } = shown(await findMemory(context, api))
    if (context.json) context.out.json({ ...fields, content })
    else {
      printFields(context.out, { ...fields, untrusted: fields.untrusted ? 'yes' : 'no' })
      printBlock(context.out, 'content', content)
    }
    return 0
  })

export const forget = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const forgotten = await forgetSelected(context, api)
    if (json) out.json({ forgotten })
    else out.print(`forgot ${memories(forgotten)}`)
    return 0
  })

/** Forgets one memory, or with `--all` every memory of an owner. Returns their number. */
async function forgetSelected(context: CliContext, api: Api): Promise<number> {
  const { args, options } = context
  const owner = textOption(context, 'owner')
  const isAll = options.all === true
  if (isAll === (args[0] !== undefined) || (isAll && owner === undefined))
    throw new AppError('invalid_request', "name one key, or an owner with --all: sluice memory forget --owner 'device:…' --all")
  if (isAll) return (await api.delete<{ readonly deleted: number }>('/api/memories', { owner })).deleted
  const found = await findMemory(context, api)
  await api.delete(apiPath('/api/memories', found.key), { owner: found.owner })
  return 1
}

export const assign = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json, args, options } = context
    if ((options.shared === true) === (args[0] !== undefined))
      throw new AppError('invalid_request', 'name the new owner, or --shared to let every client recall them')
    const { from, to, assigned, left } = await api.post<MemoriesMoved>('/api/memories/assign', {
      from: textOption(context, 'from'),
      to: options.shared === true ? 'shared' : args[0],
      key: textOption(context, 'key'),
    })
    if (json) out.json({ assigned, left })
    else out.print(`gave ${memories(assigned)} to ${to}`)
    if (left > 0) out.warn(`${memories(left)} stayed with ${from}, because ${to} uses the same key already`)
    return 0
  })

/** Finds the memory with the key of the command line. Throws `invalid_request` if several owners use the key and none is named. */
async function findMemory(context: CliContext, api: Api): Promise<Memory> {
  const [key = ''] = context.args
  const { items } = await readMemories(api, textOption(context, 'owner'), Number.POSITIVE_INFINITY)
  const found = items.filter((memory) => memory.key === key)
  const [first] = found
  if (!first) throw new AppError('not_found', `there is no memory '${key}'; 'sluice memory list' lists the keys`)
  if (found.length > 1) {
    const owners = found.map(({ owner }) => owner).join(', ')
    throw new AppError('invalid_request', `'${key}' is a memory of ${owners}: add --owner`)
  }
  return first
}

/** Reads the memories of one owner, or of all. */
const readMemories = (api: Api, owner: string | undefined, most: number) =>
  readPages<Memory, string>(most, PAGE_MAX, async (limit, cursor) => {
    const scope = owner === undefined ? { all: true } : { owner }
    const { memories: items, next } = await api.get<MemoriesPage>('/api/memories', { ...scope, limit, cursor })
    return { items, next }
  })

const memories = (count: number): string => (count === 1 ? '1 memory' : `${count} memories`)

/** The JSON form of a memory. */
const shown = ({ owner, key, category, untrusted, updated_at, content }: Memory) => ({
  owner,
  key,
  category,
  untrusted,
  updated_at,
  content,
})
