/**
 * Reads the words that programs add to the text of their messages. Sources: https://docs.discord.com/developers/resources/message#embed-object
 * and https://docs.discord.com/developers/components/reference
 */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'

const DEPTH_MAX = 8
const PARTS_MAX = 500

export const wordsOfEmbeds = ({ embeds }: Members): readonly string[] =>
  bounded(list(embeds).flatMap((embed) => wordsOfEmbed(members(embed))))

export function wordsOfComponents({ components }: Members): readonly string[] {
  const found: string[] = []
  addWordsOfComponents(components, found, 0)
  return bounded(found)
}

const bounded = (parts: readonly string[]): readonly string[] => {
  const withWords = parts.map((words) => words.trim()).filter((words) => words !== '')
  return withWords.length > PARTS_MAX ? [...withWords.slice(0, PARTS_MAX), '…'] : withWords
}

function wordsOfEmbed({ author, title, url, description, fields, footer }: Members): string[] {
  const rows = list(fields).map((field) => {
    const { name, value } = members(field)
    return [text(name), text(value)].filter((part) => part !== '').join(': ')
  })
  return [text(members(author).name), text(title), text(url), text(description), ...rows, text(members(footer).text)]
}

function addWordsOfComponents(components: unknown, found: string[], depth: number): void {
  for (const each of list(components).map(members)) {
    if (found.length > PARTS_MAX || depth > DEPTH_MAX) return
    const { content, description, accessory, items } = each
    found.push(...[text(content), text(description)].filter((words) => words.trim() !== ''))
    addWordsOfComponents(each.components, found, depth + 1)
    addWordsOfComponents([...(accessory === undefined || accessory === null ? [] : [accessory]), ...list(items)], found, depth + 1)
  }
}
