/** The files that a message names: a picture is shown, and every file can be saved. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { BASE } from '../data/base.ts'
import { Name } from './text.tsx'

const IMAGE_BYTES_MAX = 25 * 1024 * 1024

export interface NamedFile {
  readonly kind: string
  readonly name: string
  /** Where the workspace has it; undefined for a file that was not saved. */
  readonly path: string | undefined
  /** What the message says about it. */
  readonly note?: string
}

const RETURNED = /\[(IMAGE|PHOTO|AUDIO|VOICE|VIDEO|DOCUMENT|FILE):([^[\]\n]{1,1000})\]/gi
const KINDS: Readonly<Record<string, string>> = { PHOTO: 'Image', IMAGE: 'Image', AUDIO: 'Audio', VOICE: 'Audio', VIDEO: 'Video' }
const FILES_MAX = 20

/** Returns the files that an answer returns by markers such as `[IMAGE:chart.png]`. */
export function returnedFiles(answer: string): readonly NamedFile[] {
  const found = new Map<string, NamedFile>()
  for (const [, word = '', inside = ''] of answer.matchAll(RETURNED)) {
    const path = inside.trim()
    if (path === '' || /^[a-z][a-z0-9+.-]*:/i.test(path) || found.size >= FILES_MAX) continue
    found.set(path, { kind: KINDS[word.toUpperCase()] ?? 'Document', name: path.slice(path.lastIndexOf('/') + 1), path })
  }
  return [...found.values()]
}

/** The pictures that every browser draws and that run nothing, by their first bytes. What a name or a header says does not count. */
const PICTURES: readonly (readonly [string, readonly number[]])[] = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ['image/jpeg', [0xff, 0xd8, 0xff]],
  ['image/gif', [0x47, 0x49, 0x46, 0x38]],
  ['image/webp', [0x52, 0x49, 0x46, 0x46]],
]

const pictureType = (bytes: Uint8Array): string | undefined =>
  PICTURES.find(([, start]) => start.every((byte, index) => bytes[index] === byte))?.[0]

const addressOf = (session: string, path: string): string =>
  new URL(`api/sessions/${encodeURIComponent(session)}/file?path=${encodeURIComponent(path)}`, BASE).href

/** `isStored` is false while the message of the files may not be stored yet, so that the gateway would not know them. */
export function Files({
  session,
  files,
  isStored,
}: {
  readonly session: string | undefined
  readonly files: readonly NamedFile[]
  readonly isStored: boolean
}) {
  if (files.length === 0) return null
  return (
    <ul class="attached" aria-label="Attached files">
      {files.map((file, index) => (
        <FileView key={index} session={session} file={file} isStored={isStored} />
      ))}
    </ul>
  )
}

function FileView({
  session,
  file: { kind, name, path, note },
  isStored,
}: {
  readonly session: string | undefined
  readonly file: NamedFile
  readonly isStored: boolean
}) {
  // What was stored once stays so while the next turn runs.
  const wasStored = useRef(false)
  wasStored.current ||= isStored
  const address = session === undefined || path === undefined || !wasStored.current ? undefined : addressOf(session, path)
  const picture = usePicture(kind === 'Image' ? address : undefined)
  return (
    <li title={path}>
      {picture !== undefined && <img class="preview" src={picture} alt={`The file ${name}`} />}
      <span class="badge">
        {kind}:{' '}
        {address === undefined ? (
          <Name value={name} />
        ) : (
          <a href={address} download={name} aria-label={`Save ${name}`}>
            <Name value={name} />
          </a>
        )}
        {note !== undefined && (
          <span class="quiet">
            {' '}
            <Name value={note} />
          </span>
        )}
      </span>
    </li>
  )
}

/** Pictures load one after the other, because a client has a share of downloads. */
let loading: Promise<void> = Promise.resolve()

/** Loads a picture, and returns its address within this page; undefined for anything that is no picture. */
function usePicture(address: string | undefined): string | undefined {
  const [shown, setShown] = useState<string | undefined>()
  useEffect(() => {
    if (address === undefined) return
    const stop = new AbortController()
    let made: string | undefined
    const load = async () => {
      if (stop.signal.aborted) return
      const answer = await fetch(address, { signal: stop.signal, headers: { 'x-sluice-dashboard': '1' } })
      if (!answer.ok || Number(answer.headers.get('content-length') ?? 0) > IMAGE_BYTES_MAX) return
      const bytes = new Uint8Array(await answer.arrayBuffer())
      const type = pictureType(bytes)
      if (type === undefined || stop.signal.aborted) return
      made = URL.createObjectURL(new Blob([bytes], { type }))
      setShown(made)
    }
    loading = loading.then(load).catch(() => undefined)
    return () => {
      stop.abort()
      if (made !== undefined) URL.revokeObjectURL(made)
      setShown(undefined)
    }
  }, [address])
  return shown
}
