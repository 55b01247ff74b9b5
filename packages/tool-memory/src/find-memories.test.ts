import { type Memories, SHARED_MEMORIES } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { memoryEntries } from '@sluice/testkit/memory-entries'
import { describe, expect, test } from 'vitest'
import { findMemories, recall } from './find-memories.ts'
import feature from './index.ts'

const ME = 'device:me'

const remember = async (...texts: readonly string[]) => {
  const memories = memoryEntries()
  for (const [at, content] of texts.entries())
    await memories.put({ owner: ME, key: `k${at}`, content, category: 'core', untrusted: false, atMs: at })
  return memories
}

const OTHERS = [
  'The printer is in the cellar',
  'Mein Auto ist blau',
  '駅は右側です',
  'ฉันทำงานที่ธนาคาร',
  'أعمل في مستشفى',
  'Works on Mondays',
]

describe.each<[string, string, string]>([
  ['Japanese', '犬の名前はポチです', 'うちの犬は何歳ですか？'],
  ['Japanese katakana', '好きな飲み物はコーヒーです', 'コーヒーを注文して'],
  ['Chinese', '我最喜欢的颜色是绿色', '买一件绿色的衬衫'],
  ['German compounds', 'Geburtstag von Ada: 3. Mai', 'Was wäre ein Geburtstagsgeschenk für sie?'],
  ['German parts of compounds', 'Das Geburtstagsgeschenk liegt im Schrank', 'Hat sie bald Geburtstag?'],
  ['German umlauts', 'Mag keine Süßkartoffeln', 'süßkartoffeln kochen?'],
  ['Thai', 'แมวของฉันชื่อมะลิ', 'แมวหิวแล้ว'],
  ['Arabic', 'اسم ابنتي ليلى', 'متى عيد ميلاد ابنتي؟'],
  ['Arabic with an article and vowels', 'يحب القهوة السوداء', 'هل قَهْوَة جاهزة؟'],
  ['accents', 'Favourite dessert: crème brûlée', 'a recipe for CREME BRULEE'],
  ['Korean', '제 고양이 이름은 나비입니다', '고양이 밥 줘'],
  ['Russian', 'Любимый город Тверь', 'погода в городе'],
])('%s', (_name, content, message) => {
  test('is found by a message that says it in other words', async () => {
    const memories = await remember(...OTHERS, content)
    expect((await findMemories(memories, ME, message, 3))[0]?.content).toBe(content)
    expect((await recall(memories, ME, message))[0]).toEqual({ text: `k${OTHERS.length}: ${content}`, untrusted: false })
  })
})

test('a message that shares no word recalls nothing', async () => {
  const memories = await remember(...OTHERS)
  for (const message of ['ok', 'thanks!', 'はい', '👍', '', '?!']) expect(await recall(memories, ME, message), message).toEqual([])
})

test('lets the event loop go on while it compares long memories', async () => {
  const words = Array.from({ length: 500 }, (_, at) => `word${at}`).join(' ')
  const memories = await remember(...Array.from({ length: 30 }, (_, at) => `${words} ${at}`))
  let ticks = 0
  let isOver = false
  const count = () => {
    ticks++
    if (!isOver) setImmediate(count)
  }
  count()
  expect(await findMemories(memories, ME, words, 5)).toHaveLength(5)
  isOver = true
  expect(ticks).toBeGreaterThanOrEqual(30)
})

test.each([
  [
    'English',
    ['The boat lies in Turku', 'The printer is in the cellar', 'The cat is called Tom', 'Mondays are the days of the market'],
    'What happened after the kill?',
    'Feed the cat',
    2,
  ],
  [
    'German',
    ['Der Drucker steht im Keller', 'Der Wagen ist blau', 'Der Hund heißt Rex', 'Am Montag ist der Markt'],
    'Was macht der Prozess?',
    'Ruf mal der Hund!',
    2,
  ],
])('%s words that most memories share recall nothing on their own', async (_name, contents, message, about, at) => {
  const memories = await remember(...contents)
  expect(await recall(memories, ME, message)).toEqual([])
  expect((await recall(memories, ME, about)).map(({ text }) => text)).toEqual([`k${at}: ${contents[at]}`])
  expect(await recall(await remember(...contents.slice(0, 3)), ME, message)).not.toEqual([])
})

test('an article recalls none of many memories, and their subject does', async () => {
  const memories = await remember(...Array.from({ length: 100 }, (_, at) => `The tower number ${at} is old`))
  expect(await recall(memories, ME, 'after the kill')).toEqual([])
  expect(await recall(memories, ME, 'how old is the tower')).toHaveLength(5)
})

test('a rare word counts more than one that all memories have', async () => {
  const memories = await remember('Ada likes tea', 'Ada likes rowing', 'Ada lives in Oslo', 'Ada is tall')
  expect((await findMemories(memories, ME, 'Does Ada like rowing?', 2))[0]?.content).toBe('Ada likes rowing')
})

test('stays within 500 tokens, in every script', async () => {
  for (const [word, tokensOf] of [
    ['garden ', (text: string) => text.length / 4],
    ['庭は広い', (text: string) => text.length],
  ] as const) {
    const memories = await remember(...Array.from({ length: 8 }, () => word.repeat(1000)))
    const found = (await recall(memories, ME, word)).map(({ text }) => text).join('\n')
    expect(found).not.toBe('')
    expect(tokensOf(found)).toBeLessThan(520)
  }
})

test('recalls only what the client may read', async () => {
  const memories = await remember('The safe opens with 1234')
  await memories.put({
    owner: SHARED_MEMORIES,
    key: 'rule',
    content: 'The safe is in the hall',
    category: 'core',
    untrusted: false,
    atMs: 1,
  })
  expect(await recall(memories, 'device:other', 'Where is the safe?')).toEqual([{ text: 'rule: The safe is in the hall', untrusted: true }])
})

test('says which memories are text of others', async () => {
  const memories = await remember('The safe opens with 1234')
  await memories.put({ owner: ME, key: 'page', content: 'The safe is blue', category: 'core', untrusted: true, atMs: 1 })
  expect(new Map((await recall(memories, ME, 'safe')).map(({ text, untrusted }) => [text, untrusted]))).toEqual(
    new Map([
      ['k0: The safe opens with 1234', false],
      ['page: The safe is blue', true],
    ]),
  )
})

test('compares at most 30 of many memories', async () => {
  const memories = await remember(...Array.from({ length: 100 }, (_, at) => `The safe ${at}`))
  let read = 0
  const counting: Memories = {
    ...memories,
    search: () => expect.fail('the list of all memories was read'),
    async similar(...asked) {
      const found = await memories.similar(...asked)
      read += found.length
      return found
    },
  }
  expect(await recall(counting, ME, 'safe')).toHaveLength(5)
  expect(read).toBe(30)
})

test('the feature offers the recall to the agent, without a call of a tool', async () => {
  const memory = await remember('Likes green tea')
  const { services } = feature.build(testHost({ services: { memory } }), { shared: false })
  expect(await services?.recall?.(ME, 'Which tea shall I buy?')).toEqual([{ text: 'k0: Likes green tea', untrusted: false }])
  const { services: without } = feature.build(testHost(), { shared: false })
  expect(await without?.recall?.(ME, 'tea')).toEqual([])
})
