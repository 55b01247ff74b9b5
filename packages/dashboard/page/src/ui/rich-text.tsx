/** Markdown as elements, such as the answer of a model. It makes no picture and no markup of its own, and an address is opened by a person. */
import { createContext } from 'preact'
import { useContext, useMemo, useState } from 'preact/hooks'
import { Copy } from './controls.tsx'
import { confirmed } from './dialog.tsx'
import { type Block, type Inline, parseMarkdown } from './markdown.ts'
import { cut, integer, Name, pieces } from './text.tsx'

const SHOWN_CHARS_MAX = 8000

/** Whether Sluice itself wrote the text: its addresses are then links, and none is asked about. */
const IsOwnText = createContext(false)

const open = async (url: string) => {
  const { host } = new URL(url)
  const agreed = await confirmed(
    host === '' ? 'Write a mail?' : `Open ${host}?`,
    `The agent wrote this address. What it contains reaches that server: ${url}`,
    'Open',
    false,
  )
  if (agreed) window.open(url, '_blank', 'noopener,noreferrer')
}

const inlines = (parts: readonly Inline[]) => parts.map((part, index) => <InlineView key={index} part={part} />)

function InlineView({ part }: { readonly part: Inline }) {
  const isOwn = useContext(IsOwnText)
  switch (part.kind) {
    case 'text':
      return <>{pieces(part.text)}</>
    case 'code':
      return <code>{pieces(part.text)}</code>
    case 'strong':
      return <strong>{inlines(part.inner)}</strong>
    case 'em':
      return <em>{inlines(part.inner)}</em>
    case 'del':
      return <del>{inlines(part.inner)}</del>
    case 'link':
      if (isOwn)
        return (
          <a href={part.url} target="_blank" rel="noopener noreferrer">
            {part.label}
          </a>
        )
      return (
        <button type="button" class="address" onClick={() => void open(part.url)}>
          <Name value={part.label} />
          {part.label !== part.url && part.label !== part.url.replace(/\/$/, '') && (
            <span class="quiet">
              {' '}
              (<Name value={new URL(part.url).host || part.url} />)
            </span>
          )}
        </button>
      )
  }
}

/** The headings of an answer are below those of the page. */
const HEADINGS = ['h3', 'h4', 'h5', 'h6'] as const

const blocks = (all: readonly Block[]) => all.map((block, index) => <BlockView key={index} block={block} />)

function BlockView({ block }: { readonly block: Block }) {
  switch (block.kind) {
    case 'paragraph':
      return <p dir="auto">{inlines(block.inner)}</p>
    case 'heading': {
      const Heading = HEADINGS[Math.min(block.level, HEADINGS.length) - 1] ?? 'h6'
      return <Heading dir="auto">{inlines(block.inner)}</Heading>
    }
    case 'code':
      return (
        <div class="code-block">
          <div class="row spread">
            <span class="quiet">{block.language}</span>
            <Copy text={block.text} />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard. */}
          <section class="scroll" tabIndex={0} aria-label={block.language === '' ? 'Code' : `Code in ${block.language}`}>
            <pre>
              <code>{pieces(block.text)}</code>
            </pre>
          </section>
        </div>
      )
    case 'quote':
      return <blockquote>{blocks(block.blocks)}</blockquote>
    case 'list': {
      const items = block.items.map((item, index) => (
        <li key={index} dir="auto">
          {blocks(item)}
        </li>
      ))
      return block.start === null ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>
    }
    case 'table':
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard.
        <section class="scroll" aria-label="Table" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {block.head.map((cell, index) => (
                  <th key={index} scope="col" dir="auto">
                    {inlines(cell)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column} dir="auto">
                      {inlines(cell)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )
    case 'rule':
      return <hr />
  }
}

/** A very long text is cut until a person asks for more. */
export function RichText({ value }: { readonly value: string }) {
  const [shownMax, setShownMax] = useState(SHOWN_CHARS_MAX)
  const isCut = value.length > shownMax
  const parsed = useMemo(() => parseMarkdown(isCut ? `${cut(value, shownMax)}…` : value), [value, shownMax])
  return (
    <>
      <div class="rich" dir="auto">
        {blocks(parsed)}
      </div>
      {isCut && (
        <button type="button" class="small" onClick={() => setShownMax(shownMax * 4)}>
          Show more ({integer(value.length - shownMax)} characters are left)
        </button>
      )}
    </>
  )
}

/** A text of Sluice's own documentation. */
export const OwnText = ({ value }: { readonly value: string }) => (
  <IsOwnText.Provider value={true}>
    <RichText value={value} />
  </IsOwnText.Provider>
)
