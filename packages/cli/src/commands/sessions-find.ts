/** `sluice sessions find`: words in the messages of conversations. */
import type { FoundMessage, MessagesPage } from '@sluice/http/answers'
import { oneLine } from '@sluice/sdk'
import { withApi } from '../api/open-api.ts'
import { readPages } from '../api/pages.ts'
import type { CliContext } from '../context.ts'
import { limitOption, textOption } from '../option-values.ts'
import { scopeOptions } from './sessions.ts'

/** The largest page of `GET /api/messages`. */
const PAGE = 50
/** An excerpt has at most 200 characters and a dot on each side. */
const TEXT_CHARS_MAX = 202

export const find = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json, args } = context
    const query = { ...scopeOptions(context), find: args[0] }
    const first = textOption(context, 'cursor')
    const { items, next } = await readPages<FoundMessage, string>(limitOption(context), PAGE, async (limit, cursor = first) => {
      const page = await api.get<MessagesPage>('/api/messages', { ...query, limit, cursor })
      return { items: page.found, next: page.next }
    })
    if (json) out.json({ found: items, next })
    else if (items.length === 0) out.print('not found')
    else
      for (const { at, role, session_id, text } of items)
        out.print(`${out.style('dim', `${at} ${role}`)}  ${session_id}\n  ${oneLine(text, TEXT_CHARS_MAX)}`)
    if (!json && next !== null) out.warn(`older ones: add --cursor ${next}`)
    return 0
  })
