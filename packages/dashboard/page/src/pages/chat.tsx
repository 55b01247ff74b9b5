/** The chat: sessions, the conversation of one, and its tool calls and questions as they come. */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Conversation, type Entry, type Question, type ToolCall } from '../chat/conversation.ts'
import { answered, api } from '../data/api.ts'
import { refresh, useApi } from '../data/queries.ts'
import { go, to, useParams } from '../data/router.ts'
import { confirmed, Dialog } from '../ui/dialog.tsx'
import { Files, returnedFiles } from '../ui/files.tsx'
import { Icon } from '../ui/icon.tsx'
import { Message } from '../ui/message.tsx'
import { Loaded, Page, Problem } from '../ui/parts.tsx'
import { RichText } from '../ui/rich-text.tsx'
import { Line, MonoName, Name, Text } from '../ui/text.tsx'
import { attempt, say } from '../ui/toast.tsx'
import { bytes, dateText, duration, Time } from '../ui/values.tsx'

/** How close to the end the reader must be for new text to scroll into view. */
const END_PIXELS = 80
const TEXT_BYTES_MAX = 65_536
/** The longest list that the gateway answers at once. */
const SESSIONS_MAX = 200

export function Chat() {
  const { id } = useParams<{ id?: string }>()
  const [conversation, setConversation] = useState<Conversation>(() => new Conversation(id))
  const [showsSessions, setShowsSessions] = useState(false)
  useEffect(() => {
    if (id !== conversation.id.value) setConversation(new Conversation(id))
  }, [id])
  useEffect(() => () => conversation.close(), [conversation])
  // A new conversation gets its id from the gateway, and from then on has a place of its own.
  const given = conversation.id.value
  useEffect(() => {
    if (given !== undefined && id === undefined && conversation.entries.value.length > 0) history.replaceState(null, '', to('chat', given))
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
          <Messages conversation={conversation} />
          <Composer conversation={conversation} />
        </div>
      </div>
    </Page>
  )
}

function Sessions({ current, onOpen }: { readonly current: string | undefined; readonly onOpen: () => void }) {
  const [limit, setLimit] = useState(50)
  const sessions = useApi('/api/sessions', { query: { limit: String(limit) } })
  return (
    <aside class="sessions" aria-label="Sessions">
      <div class="row spread">
        <h2>Sessions</h2>
        <a class="button small" href="#/chat" onClick={onOpen}>
          <Icon name="plus" /> New
        </a>
      </div>
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
  const entries = conversation.entries.value
  const isRunning = conversation.running.value > 0
  useEffect(() => {
    const element = list.current
    if (element && isAtEnd.current) element.scrollTop = element.scrollHeight
  }, [entries, isRunning])
  const last = entries.findLast((entry) => entry.kind === 'answer' || entry.kind === 'problem')
  return (
    <section
      class="messages"
      aria-label="Messages"
      ref={list}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < END_PIXELS
      }}
    >
      <div class="column">
        {conversation.hasMore.value && (
          <button type="button" class="small" onClick={() => void conversation.more()}>
            Show earlier messages
          </button>
        )}
        {conversation.problem.value !== undefined && <Problem error={conversation.problem.value} retry={() => conversation.load()} />}
        {entries.length === 0 && !isRunning && (
          <div class="welcome">
            <h2>What shall I do?</h2>
            <p class="quiet">The agent answers here. Its tool calls are shown as they run, and those that need a person ask you.</p>
          </div>
        )}
        {entries.map((entry, index) => (
          <EntryView key={index} entry={entry} conversation={conversation} />
        ))}
        {isRunning && entries.at(-1)?.kind === 'person' && <p class="working">Working…</p>}
      </div>
      <div class="hidden-text" role="status">
        {!isRunning && last
          ? `The answer has ended: ${last.kind === 'answer' || last.kind === 'problem' ? last.text.slice(0, 300) : ''}`
          : isRunning
            ? 'The agent works.'
            : ''}
      </div>
    </section>
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
          {entry.facts && <p class="quiet facts-line">{entry.facts}</p>}
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
    case 'question':
      return <QuestionView question={entry.question} conversation={conversation} />
    case 'problem':
      return (
        <div class="note bad">
          <Text value={entry.text} />
        </div>
      )
    case 'aborted':
      return <p class="quiet">Aborted.</p>
  }
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

function QuestionView({
  question: { requestId, tool, summary, expiresAtMs, answer },
  conversation,
}: {
  readonly question: Question
  readonly conversation: Conversation
}) {
  return (
    <div class="said question" role={answer ? undefined : 'alert'}>
      <p>
        <strong>
          May the agent run <Name value={tool} />?
        </strong>{' '}
        {answer && <span class="badge">{answer === 'over' ? 'no longer asked' : answer}</span>}
      </p>
      <div class="block mono">
        <Text value={summary} />
      </div>
      {!answer && (
        <div class="row">
          <button type="button" class="primary" onClick={() => conversation.answer(requestId, true)}>
            Approve
          </button>
          <button type="button" onClick={() => conversation.answer(requestId, false)}>
            Reject
          </button>
          <span class="quiet">Without an answer it is rejected in {duration(Math.max(0, expiresAtMs - Date.now()))}.</span>
        </div>
      )}
    </div>
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
  const isReady = conversation.state.value === 'ready'
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
        placeholder={isReady ? 'Write to the agent' : 'Connecting…'}
        onInput={grow}
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
          <Icon name="stop" /> Stop
        </button>
      )}
      <button type="submit" class="primary" disabled={isUploading}>
        <Icon name="send" /> Send
      </button>
    </form>
  )
}
