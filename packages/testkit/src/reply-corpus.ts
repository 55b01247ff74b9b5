/** Replies as agents write them, made from a seed: Markdown of all kinds, and what must arrive of it. */
import { createRandom, type Random } from './random.ts'

export interface CorpusReply {
  readonly markdown: string
  /** Words without marks, each of which occurs once in the Markdown. */
  readonly words: readonly string[]
  /** Texts that look like marks and are not, such as a mark that nothing closes. */
  readonly literals: readonly string[]
  /** The addresses of links. */
  readonly addresses: readonly string[]
}

/** What no platform shows to people: the marks of Markdown and of HTML outside of `CorpusReply.literals`. */
export const RAW_MARK =
  /<\/?(?:b|i|s|u|em|strong|code|sub|sup|br|div|details|summary|ul|ol|li|table|tr|th|td|blockquote)>|<!--|&[a-z]+;|[：。]\*|\*\*|~~|`|\]\(|^#{1,6} |^> |^\s*[-*+] |^\s*\|.*\||^\|?[-: ]+\|[-: |]+$/m

const TAGS = ['b', 'i', 's', 'u', 'em', 'strong', 'code', 'sub', 'sup', 'div']

/** Returns the same replies for each call with a seed. */
export function replyCorpus(count: number, seed = 44): readonly CorpusReply[] {
  const random = createRandom(seed)
  return Array.from({ length: count }, (_, at) => new Writer(random, at).reply())
}

class Writer {
  #random: Random
  readonly #at: number
  #next = 0
  readonly #words: string[] = []
  readonly #literals: string[] = []
  readonly #addresses: string[] = []

  constructor(random: Random, at: number) {
    this.#random = random
    this.#at = at
  }

  reply(): CorpusReply {
    const blocks = Array.from({ length: this.#random.within(1, 8) }, () => this.#block())
    // The blocks of the next replies stay the same when one is added to those below.
    this.#random = createRandom(this.#at)
    blocks.push(this.#laterBlock(), this.#laterBlock())
    return { markdown: blocks.join('\n\n'), words: this.#words, literals: this.#literals, addresses: this.#addresses }
  }

  #word(stem?: string): string {
    const number = `${this.#at}x${this.#next++}x`
    const stems =
      stem !== undefined ? [stem] : ['plain', 'snake_case_name', 'Grüße', 'שלום', 'مرحبا', '東京', 'don’t', 'v1.2', '😀', 'e\u0301']
    const word = `${this.#random.pick(stems)}${number}`
    this.#words.push(word)
    return word
  }

  #address(): string {
    const address = `https://example.org/a_b_c/${this.#at}_${this.#next++}_?q=*x*&y=1`
    this.#addresses.push(address)
    return address
  }

  #literal(text: string): string {
    this.#literals.push(text)
    return text
  }

  #span(depth = 0): string {
    const inner = (): string => (depth < 2 && this.#random.chance(0.4) ? this.#span(depth + 1) : this.#word())
    const spans: readonly (() => string)[] = [
      () => this.#word(),
      () => this.#word(),
      () => `${this.#word()} ${this.#word()}`,
      () => (depth === 0 ? `**${this.#word()} ${inner()} ${this.#word()}**` : `**${this.#word()}**`),
      () => (depth === 0 ? `*${this.#word()} ${inner()} ${this.#word()}*` : this.#word()),
      () => `~~${this.#word()}~~`,
      () => `\`${this.#word()} ${this.#word()}\``,
      () => `[${this.#word()} ${this.#word()}](${this.#address()})`,
      () => `pre**${this.#word('within')}**post`,
      () => this.#address(),
      () => `<${this.#address()}>`,
      () => `<div>${this.#word()}</div>`,
      () => `![${this.#word()}](${this.#address()})`,
      () => `2 * 3 ${this.#word()} 4 * 5`,
      () => `\\${this.#literal(`*${this.#at}z${this.#next++}`)}`,
      () => `AT&amp;T ${this.#word()}`,
      () => `**${this.#word()}：**${this.#word('東京')}`,
      () => `見て**“${this.#word()}”**です`,
      () => `*${this.#word()}：*${this.#word('東京')}`,
      () => `~~${this.#word()}。~~${this.#word('東京')}`,
      () => this.#tagged(this.#random.pick(TAGS)),
      () => `${this.#word()}<br>${this.#word()} <!-- nothing -->`,
      () => `&ldquo;${this.#word()}&rdquo; &ne; &deg;`,
      () => `${this.#literal(`Map<k${this.#at}, v${this.#next++}>`)} a < b`,
    ]
    return this.#random.pick(spans)()
  }

  #tagged(tag: string): string {
    return `<${tag}>${this.#word()}</${tag}>`
  }

  #line(): string {
    return Array.from({ length: this.#random.within(1, 6) }, () => this.#span()).join(' ')
  }

  #block(): string {
    const blocks: readonly (() => string)[] = [
      () => this.#line(),
      () => `${this.#line()}\n${this.#line()}`,
      () => `${'#'.repeat(this.#random.within(1, 4))} ${this.#line()}`,
      () => this.#list('- ', '  '),
      () => this.#list('1. ', '   '),
      () => `- ${this.#line()}\n\n  ${this.#line()}\n- [x] ${this.#word()}`,
      () => `> ${this.#line()}\n> ${this.#word()}`,
      () => `\`\`\`ts\n${this.#word()} = 1\n\n  indented ${this.#word()}\n\`\`\``,
      () => `\`\`\`\n${Array.from({ length: 60 }, () => `line ${this.#word()}`).join('\n')}\n\`\`\``,
      () => this.#table(2),
      () => this.#table(5),
      () => Array.from({ length: 400 }, () => this.#word()).join(' '),
      () => `${this.#word()}${'long'.repeat(1500)}`,
      () => `---\n\n${this.#word()}`,
      () => `<details>\n<summary>${this.#word()}</summary>\n\n${this.#line()}\n\n</details>`,
      () => `${this.#word()} ${this.#literal(`**${this.#at}y${this.#next++}`)}`,
    ]
    return this.#random.pick(blocks)()
  }

  /** Returns a block with lists and tables of HTML, notes, tasks, formulas, deep quotes, or both directions of writing. */
  #laterBlock(): string {
    const blocks: readonly (() => string)[] = [
      () => this.#tags('ul', ['li'], () => `${this.#word()} ${this.#tagged('b')} [${this.#word()}](${this.#address()})`),
      () => `${this.#word()}\n${this.#tags('ol', ['li'], () => `${this.#word()}${this.#tags('ul', ['li'], () => this.#word())}`)}`,
      () => this.#tags('table', ['tr', this.#random.pick(['th', 'td'])], () => this.#word()),
      () => `<blockquote>${this.#word()}<br>${this.#word()}</blockquote>`,
      () => this.#table(2, () => `${this.#word()}<br>${this.#tags('ul', ['li'], () => this.#word()).replaceAll('\n', '')}`),
      () => `${this.#word()}[^${this.#at}]\n\n[^${this.#at}]: ${this.#word()} ${this.#word()}`,
      () => `- [ ] ${this.#word()}\n  - [x] **${this.#word()}** ${this.#word()}\n- [ ] ${this.#word()}`,
      () => `$$\n\\frac{${this.#word()}}{2}\n$$\n\n$x = ${this.#word()}$`,
      () => `> ${this.#word()}\n>\n> > ${this.#word()}\n> >\n> > \`\`\`js\n> > ${this.#word()}\n> > \`\`\`\n>\n> ${this.#word()}`,
      () => `${this.#word('שלום')} **${this.#word('plain')} ${this.#word('مرحبا')}** \`${this.#word('code')}\` ${this.#word('עולם')}`,
    ]
    return this.#random.pick(blocks)()
  }

  /** Returns two of the innermost tags within each of the others. */
  #tags(outer: string, inner: readonly string[], words: () => string): string {
    const [name, ...rest] = inner
    if (name === undefined) return `<${outer}>${words()}</${outer}>`
    const within = (): string => this.#tags(name, rest, words)
    return `<${outer}>\n${within()}\n${within()}\n</${outer}>`
  }

  #list(marker: string, indent: string): string {
    const items = Array.from({ length: this.#random.within(1, 4) }, () => {
      const nested = this.#random.chance(0.4) ? `\n${indent}- ${this.#line()}\n${indent}  - ${this.#word()}` : ''
      return `${marker}${this.#line()}${nested}`
    })
    return items.join('\n')
  }

  #table(columns: number, cell = (): string => (this.#random.chance(0.2) ? `**${this.#word()}**` : this.#word())): string {
    const row = (words: () => string): string => `| ${Array.from({ length: columns }, words).join(' | ')} |`
    return [row(cell), row(() => '---'), row(cell), row(cell)].join('\n')
  }
}
