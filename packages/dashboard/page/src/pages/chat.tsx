/** The chat: sessions, the conversation of one, and its tool calls and questions as they come. */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Conversation, type Entry, type Facts, type ToolCall } from '../chat/conversation.ts'
import { draftOf, forget, keepDraft } from '../chat/outgoing.ts'
import { answered, api } from '../data/api.ts'
import { refresh, useApi, useOverview } from '../data/queries.ts'
import { go, placeQuery, to, useParams } from '../data/router.ts'
import { role } from '../data/session.ts'
import { ApprovalCard } from '../ui/approval.tsx'
import { Ask } from '../ui/controls.tsx'
import { confirmed, Dialog } from '../ui/dialog.tsx'
import { Files, returnedFiles } from '../ui/files.tsx'
import { Icon } from '../ui/icon.tsx'
import { Message } from '../ui/message.tsx'
import { Pager, usePaging } from '../ui/pages.tsx'
import { Loaded, Note, Page, Problem } from '../ui/parts.tsx'
import { RichText } from '../ui/rich-text.tsx'
import { integer, Line, MonoName, Name, Text } from '../ui/text.tsx'
import { attempt, say } from '../ui/toast.tsx'
import { bytes, dateText, Time, usd } from '../ui/values.tsx'

/** How close to the end the reader must be for new text to scroll into view. */
const END_PIXELS = 80
const TEXT_BYTES_MAX = 65_536
/** The entries that are in the page at once: a long conversation is read a part at a time. */
const ENTRIES_MAX = 120
/** The longest list that the gateway answers at once. */
const SESSIONS_MAX = 200

export function Chat() {
  const { id } = useParams<{ id?: string }>()
  const upTo = id === undefined ? undefined : (placeQuery().get('up_to') ?? undefined)
  const [conversation, setConversation] = useState<Conversation>(() => new Conversation(id, upTo))
  const [showsSessions, setShowsSessions] = useState(false)
  useEffect(() => {
    if (id !== conversation.id.value || upTo !== conversation.upTo) setConversation(new Conversation(id, upTo))
  }, [id, upTo])
  useEffect(() => () => conversation.close(), [conversation])
  // A new conversation has an id, and so a place of its own, from its first message on.
  const given = conversation.id.value
  useEffect(() => {
    if (given !== undefined && id === undefined && conversation.entries.value.length > 0) location.replace(to('chat', given))
  }, [given, id, conversation.entries.value.length > 0])
  return (
    <Page title="Chat" whole>
      <div class={`chat ${showsSessions ? 'shows-sessions' : ''}`}>
        <Sessions current={given} onOpen={() => setShowsSessions(false)} />
        <div class="conversation">
          <div class="row conversation-head">
            <button type="button" class="small narrow-only" aria-expanded={showsSessions} onClick={() => setShowsSessions(!showsSessions)}>
              Sessions
            </button>
            <ConversationHead conversation={conversation} />
          </div>
          <Messages key={`${conversation.session} ${conversation.upTo}`} conversation={conversation} />
          {conversation.upTo === undefined ? (
            <Composer key={conversation.session} conversation={conversation} />
          ) : (
            <Note>
              <div class="row spread">
                <span>The conversation is shown up to the place that was found.</span>
                <a class="button" href={to('chat', conversation.session)}>
                  Go to its end
                </a>
              </div>
            </Note>
          )}
        </div>
      </div>
    </Page>
  )
}

function Sessions({ current, onOpen }: { readonly current: string | undefined; readonly onOpen: () => void }) {
  const [limit, setLimit] = useState(50)
  const [words, setWords] = useState('')
  const sessions = useApi('/api/sessions', { query: { limit: String(limit) } })
  return (
    <aside class="sessions" aria-label="Sessions">
      <div class="row spread">
        <h2>Sessions</h2>
        <a class="button small" href="#/chat" onClick={onOpen}>
          <Icon name="plus" /> New
        </a>
      </div>
      <Ask label="Find words" value={words} onChange={setWords} />
      {words !== '' && <FoundHere words={words} onOpen={onOpen} />}
      <Loaded query={sessions}>
        {({ sessions: rows, next }) => (
          <>
            <ul>
              {rows.map(({ session_id, name, created_at, last_activity, message_count }) => (
                <li key={session_id}>
                  <a href={to('chat', session_id)} aria-current={session_id === current ? 'page' : undefined} onClick={onOpen}>
                    <Line value={name ?? `Conversation of ${dateText(created_at)}`} />
                    <span class="quiet">
                      <Time at={last_activity} /> · {message_count} messages
                    </span>
                  </a>
                </li>
              ))}
            </ul>
            {rows.length === 0 && <p class="empty">Your conversations will be listed here.</p>}
            {next !== null && limit < SESSIONS_MAX && (
              <button type="button" class="small" onClick={() => setLimit(Math.min(limit + 50, SESSIONS_MAX))}>
                Show older
              </button>
            )}
          </>
        )}
      </Loaded>
    </aside>
  )
}

/** The messages of this browser's conversations that have the words, each leading to its conversation. */
function FoundHere({ words, onOpen }: { readonly words: string; readonly onOpen: () => void }) {
  const paging = usePaging<string>(words)
  const found = useApi('/api/messages', { query: { find: words, ...(paging.before !== undefined && { cursor: paging.before }) } })
  return (
    <Loaded query={found}>
      {({ found: rows, next }) => (
        <section aria-label="Found in messages">
          <ul>
            {rows.map(({ session_id, up_to, role: from, at, text }) => (
              <li key={`${session_id} ${up_to}`}>
                <a href={`${to('chat', session_id)}?up_to=${up_to}`} onClick={onOpen}>
                  <Line value={text} />
                  <span class="quiet">
                    <Time at={at} /> · {from === 'user' ? 'you' : 'the agent'}
                  </span>
                </a>
              </li>
            ))}
          </ul>
          {rows.length === 0 && <p class="empty">{next === null ? 'No message has these words.' : 'Older messages may have the words.'}</p>}
          <Pager paging={paging} next={next} />
          <h2>All sessions</h2>
        </section>
      )}
    </Loaded>
  )
}

function ConversationHead({ conversation }: { readonly conversation: Conversation }) {
  const id = conversation.id.value
  const sessions = useApi('/api/sessions', { query: { limit: '50' } })
  const [isRenaming, setRenaming] = useState(false)
  if (id === undefined || conversation.entries.value.length === 0) return <h2 class="grow">New conversation</h2>
  const name = sessions.data?.sessions.find((session) => session.session_id === id)?.name ?? undefined
  const rename = async (to: string) => {
    await attempt(() => answered(api.PUT('/api/sessions/{id}', { params: { path: { id } }, body: { name: to.trim() || null } })))
    setRenaming(false)
    await refresh('/api/sessions')
  }
  const erase = async () => {
    if (
      !(await confirmed(
        'Erase this conversation?',
        'Its messages, and the contents of its turns and replies, are erased for good.',
        'Erase',
      ))
    )
      return
    const done = await attempt(() => answered(api.DELETE('/api/sessions/{id}', { params: { path: { id } } })), 'Erased.')
    if (!done) return
    forget(id)
    go('/chat')
    await refresh('/api/sessions')
  }
  return (
    <>
      <h2 class="grow">
        <Line value={name ?? 'Conversation'} />
      </h2>
      {isRenaming && <Rename name={name ?? ''} onDone={rename} onClose={() => setRenaming(false)} />}
      <button type="button" class="small plain" onClick={() => setRenaming(true)}>
        Rename
      </button>
      <button type="button" class="small plain danger" onClick={() => void erase()}>
        Erase
      </button>
    </>
  )
}

function Rename({
  name,
  onDone,
  onClose,
}: {
  readonly name: string
  readonly onDone: (name: string) => Promise<void>
  readonly onClose: () => void
}) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <Dialog title="Rename this conversation" onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void onDone(input.current?.value ?? '')
        }}
      >
        <input ref={input} dir="auto" aria-label="Name" maxLength={200} defaultValue={name} />
        <div class="row end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Rename
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function Messages({ conversation }: { readonly conversation: Conversation }) {
  const list = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const top = useRef(0)
  /** How many of the last entries are left out, while a reader is at an earlier part. */
  const [left, setLeft] = useState(0)
  const entries = conversation.entries.value
  const isRunning = conversation.running.value > 0
  useEffect(() => {
    const element = list.current
    if (element && isAtEnd.current && left === 0) element.scrollTop = element.scrollHeight
  }, [entries, isRunning, left])
  const last = entries.findLast((entry) => entry.kind === 'answer' || entry.kind === 'problem')
  const end = Math.max(Math.min(ENTRIES_MAX, entries.length), entries.length - left)
  const begin = Math.max(0, end - ENTRIES_MAX)
  const step = ENTRIES_MAX / 2
  const earlier = async () => {
    isAtEnd.current = false
    const before = conversation.entries.value.length
    if (begin === 0) await conversation.more()
    const more = conversation.entries.value.length - before
    setLeft(Math.min(left + step, Math.max(0, entries.length + more - ENTRIES_MAX)))
  }
  return (
    <section
      class="messages"
      aria-label="Messages"
      ref={list}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        // A text that grows moves the end away from a reader who has not moved: only a way back leaves the end.
        if (scrollHeight - scrollTop - clientHeight < END_PIXELS) isAtEnd.current = true
        else if (scrollTop < top.current) isAtEnd.current = false
        top.current = scrollTop
      }}
    >
      <div class="column">
        {(begin > 0 || conversation.hasMore.value) && (
          <button type="button" class="small" onClick={() => void earlier()}>
            Show earlier messages
          </button>
        )}
        {conversation.problem.value !== undefined && <Problem error={conversation.problem.value} retry={() => conversation.load()} />}
        {entries.length === 0 && !isRunning && conversation.id.value === undefined && <Welcome conversation={conversation} />}
        {entries.slice(begin, end).map((entry, index) => (
          <EntryView key={begin + index} entry={entry} conversation={conversation} />
        ))}
        {left > 0 && (
          <button type="button" class="small" onClick={() => setLeft(Math.max(0, left - step))}>
            Show later messages
          </button>
        )}
        {isRunning && <Questions conversation={conversation} />}
        {isRunning && entries.at(-1)?.kind === 'person' && (
          <p class="working">
            {conversation.isWaiting.value ? 'Waits for the gateway. It is sent as soon as the gateway answers.' : 'Working…'}
          </p>
        )}
      </div>
      <div class="hidden-text" role="status">
        {!isRunning && last
          ? `The answer has ended: ${last.kind === 'answer' || last.kind === 'problem' ? last.text.slice(0, 300) : ''}`
          : isRunning
            ? conversation.isWaiting.value
              ? 'The message waits for the gateway.'
              : 'The agent works.'
            : ''}
      </div>
    </section>
  )
}

const EXAMPLES = [
  'What can you do here?',
  'Which tools do you have, and which of them ask me first?',
  'Remember that I like short answers.',
] as const

/** What stands in place of a conversation that has no message yet. */
function Welcome({ conversation }: { readonly conversation: Conversation }) {
  const { status } = useOverview(role.value === 'operator').data ?? {}
  const [model] = status?.models ?? []
  return (
    <div class="welcome stack">
      <h2>What shall I do?</h2>
      <p class="quiet">The agent answers here. Its tool calls are shown as they run, and those that need a person ask you.</p>
      <div class="row examples">
        {EXAMPLES.map((text) => (
          <button key={text} type="button" onClick={() => conversation.send(text)}>
            {text}
          </button>
        ))}
      </div>
      {model !== undefined && (
        <p class="quiet">
          <Name value={model} /> answers. <a href="#/setup">Change the model</a>
        </p>
      )}
    </div>
  )
}

/** The questions of the turns of this conversation, which wait for a person. */
function Questions({ conversation }: { readonly conversation: Conversation }) {
  const pending = useApi('/api/approvals', { query: { state: 'pending' } })
  const turns = conversation.turns.value
  return (
    <>
      {pending.data?.approvals
        .filter(({ run_id }) => turns.includes(run_id))
        .map((approval) => (
          <div key={`${approval.run_id}/${approval.step_id}`} class="said question" role="alert">
            <p>
              <strong>
                May the agent run <Name value={approval.workflow_name} />?
              </strong>
            </p>
            <ApprovalCard approval={approval} />
          </div>
        ))}
    </>
  )
}

const Said = ({ who, kind, children }: { readonly who: string; readonly kind: string; readonly children: ComponentChildren }) => (
  <article class={`said ${kind}`} aria-label={who}>
    {children}
  </article>
)

function EntryView({ entry, conversation }: { readonly entry: Entry; readonly conversation: Conversation }) {
  // The messages of a turn are stored when it ends.
  const isStored = conversation.running.value === 0
  switch (entry.kind) {
    case 'person':
      return (
        <Said who="You" kind="person">
          <Message text={entry.text} session={conversation.id.value} isStored={isStored} />
        </Said>
      )
    case 'answer':
      return (
        <Said who="Agent" kind="answer">
          <RichText value={entry.text} />
          <Files session={conversation.id.value} files={returnedFiles(entry.text)} isStored={isStored} />
          {entry.facts && <FactsLine facts={entry.facts} text={entry.text} />}
        </Said>
      )
    case 'thinking':
      return (
        <details class="said thinking">
          <summary>Reasoning</summary>
          <Text value={entry.text} class="quiet" />
        </details>
      )
    case 'tool':
      return <ToolView call={entry.call} isRunning={conversation.running.value > 0} />
    case 'gap':
      return <p class="quiet">Earlier parts of this turn are no longer kept. The whole answer comes at its end.</p>
    case 'problem':
      return (
        <div class="note bad row spread">
          <Text value={entry.text} />
          <div class="row">
            <button type="button" class="small" onClick={() => conversation.discard(entry.message)}>
              Discard
            </button>
            <button type="button" class="small" onClick={() => conversation.retry(entry.message)}>
              {entry.hasTurn ? 'Try again' : 'Send again'}
            </button>
          </div>
        </div>
      )
  }
}

/** When an answer came, what it took, and a button that copies it. */
function FactsLine({ facts: { at, turn, model, tokens, costUsd }, text }: { readonly facts: Facts; readonly text: string }) {
  if (at === undefined) return null
  return (
    <p class="quiet facts-line row">
      <Time at={at} />
      {model && (
        <span>
          · <Name value={model} />
        </span>
      )}
      {tokens !== undefined && <span>· {integer(tokens)} tokens</span>}
      {costUsd !== undefined && costUsd > 0 && <span>· {usd(costUsd)}</span>}
      {turn !== undefined && role.value === 'operator' && <a href={to('turns', turn)}>Details</a>}
      {navigator.clipboard && (
        <button type="button" class="plain small" onClick={() => void attempt(() => navigator.clipboard.writeText(text), 'Copied.')}>
          Copy
        </button>
      )}
    </p>
  )
}

function ToolView({ call: { name, input, output }, isRunning }: { readonly call: ToolCall; readonly isRunning: boolean }) {
  const text = useMemo(
    () => (input === undefined ? undefined : typeof input === 'string' ? input : JSON.stringify(input, null, 2)),
    [input],
  )
  return (
    <details class="said tool">
      <summary>
        <MonoName value={name} />{' '}
        {output === undefined && isRunning && input !== undefined ? <span class="badge info">running</span> : null}
        {text !== undefined && <Line value={text} class="quiet mono" />}
      </summary>
      {text !== undefined && (
        <div class="block mono">
          <Text value={text} />
        </div>
      )}
      {output !== undefined && (
        <div class="block mono">
          <Text value={output} />
        </div>
      )}
    </details>
  )
}

interface Attached {
  readonly name: string
  readonly bytes: number
  /** The line by which the message names the file; undefined while it is uploaded. */
  readonly text: string | undefined
}

const FILES_MAX = 10
const FILE_BYTES_MAX = 10 * 1024 * 1024

/** Returns the bytes of a file in Base64. */
const base64Of = (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result).split(',', 2)[1] ?? '')
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`))
    reader.readAsDataURL(file)
  })

/** The files of the next message, which are uploaded when they are chosen. */
function useFiles() {
  const [files, setFiles] = useState<readonly Attached[]>([])
  const upload = async (chosen: readonly File[]) => {
    for (const file of chosen) {
      if (file.size > FILE_BYTES_MAX) {
        say(`${file.name} is larger than ${bytes(FILE_BYTES_MAX)}.`, 'bad')
        continue
      }
      const attached: Attached = { name: file.name || 'file', bytes: file.size, text: undefined }
      setFiles((before) => [...before, attached].slice(0, FILES_MAX))
      const done = await attempt(async () => {
        const body = { name: attached.name, mime: file.type, data: await base64Of(file) }
        return answered(api.POST('/api/attachments', { body }))
      })
      setFiles((before) => before.flatMap((one) => (one === attached ? (done ? [{ ...one, text: done.text }] : []) : [one])))
    }
  }
  const remove = (file: Attached) => setFiles((before) => before.filter((one) => one !== file))
  return { files, upload, remove, clear: () => setFiles([]) }
}

function Composer({ conversation }: { readonly conversation: Conversation }) {
  const input = useRef<HTMLTextAreaElement>(null)
  const chooser = useRef<HTMLInputElement>(null)
  const { files, upload, remove, clear } = useFiles()
  const isRunning = conversation.running.value > 0
  const isUploading = files.some(({ text }) => text === undefined)
  const grow = () => {
    const element = input.current
    if (!element) return
    element.style.height = 'auto'
    element.style.height = `${Math.min(element.scrollHeight + 2, 220)}px`
  }
  const send = () => {
    if (!input.current || isUploading) return
    const text = [input.current.value.trim(), ...files.map((file) => file.text ?? '')].filter((line) => line !== '').join('\n')
    if (text === '') return
    if (new TextEncoder().encode(text).length > TEXT_BYTES_MAX) {
      say('The message is larger than 64 KiB.', 'bad')
      return
    }
    keepDraft(conversation.id.value, '')
    conversation.send(text)
    input.current.value = ''
    clear()
    grow()
  }
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        void upload([...(event.dataTransfer?.files ?? [])])
      }}
    >
      {files.length > 0 && (
        <ul class="attached" aria-label="Attached files">
          {files.map((file, index) => (
            <li key={index} class="badge">
              <Name value={file.name} /> <span class="quiet">{file.text === undefined ? 'is uploaded…' : bytes(file.bytes)}</span>
              <button type="button" class="plain small" aria-label={`Remove ${file.name}`} onClick={() => remove(file)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      <input
        ref={chooser}
        type="file"
        multiple
        hidden
        aria-label="Files"
        onChange={({ currentTarget }) => {
          void upload([...(currentTarget.files ?? [])])
          currentTarget.value = ''
        }}
      />
      <button type="button" class="icon" aria-label="Attach files" onClick={() => chooser.current?.click()}>
        <Icon name="clip" />
      </button>
      <textarea
        ref={input}
        rows={1}
        dir="auto"
        aria-label="Message"
        placeholder="Write to the agent"
        defaultValue={draftOf(conversation.id.value)}
        onInput={({ currentTarget }) => {
          keepDraft(conversation.id.value, currentTarget.value)
          grow()
        }}
        onPaste={({ clipboardData }) => {
          if (clipboardData && clipboardData.files.length > 0) void upload([...clipboardData.files])
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
          event.preventDefault()
          send()
        }}
      />
      {isRunning && (
        <button type="button" onClick={() => conversation.abort()}>
          <Icon name="stop" /> <span>Stop</span>
        </button>
      )}
      <button type="submit" class="primary" disabled={isUploading}>
        <Icon name="send" /> <span>Send</span>
      </button>
    </form>
  )
}
