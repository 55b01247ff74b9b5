/** The styles of a text in the form of the Bot API. */
import type { MessageEntity } from '@grammyjs/types'
import type { TextStyle } from '@sluice/sdk'
import { refusalOf } from './api.ts'

/** Names the styles of a text as Telegram does, which counts UTF-16 units, too. */
export function entitiesOf(styles: readonly TextStyle[] = []): MessageEntity[] {
  return styles.map(({ kind, from, to, value = '' }): MessageEntity => {
    const place = { offset: from, length: to - from }
    if (kind === 'link') return { type: 'text_link', ...place, url: value }
    if (kind === 'pre') return { type: 'pre', ...place, ...(value !== '' && { language: value }) }
    return { type: ENTITIES[kind], ...place }
  })
}

const ENTITIES = { bold: 'bold', italic: 'italic', strike: 'strikethrough', code: 'code', quote: 'blockquote' } as const
const BAD_ENTITIES = /entit|url/i

/** Sends the text again without its styles if the platform refuses them. */
export async function withoutRefusedEntities<T>(
  entities: MessageEntity[],
  send: (shown: { readonly entities?: MessageEntity[] }) => Promise<T>,
): Promise<T> {
  if (entities.length === 0) return send({})
  try {
    return await send({ entities })
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal?.code !== 400 || !BAD_ENTITIES.test(refusal.description)) throw error
    return send({})
  }
}
