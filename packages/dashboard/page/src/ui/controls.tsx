/** Controls of forms, with their labels. */
import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'

interface ChooseProps {
  readonly label: string
  readonly value: string
  readonly options: readonly (string | readonly [value: string, name: string])[]
  readonly onChange: (value: string) => void
}

export function Choose({ label, value, options, onChange }: ChooseProps) {
  return (
    <label>
      {label}
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {options.map((option) => {
          const [key, name] = typeof option === 'string' ? [option, option.replaceAll('_', ' ')] : option
          return (
            <option key={key} value={key}>
              {name}
            </option>
          )
        })}
      </select>
    </label>
  )
}

/** A text that is used when a person has left it or pressed Enter. */
export function Ask({ label, value, onChange, placeholder }: Omit<ChooseProps, 'options'> & { readonly placeholder?: string }) {
  // What is typed stays while the page is drawn again, until another value is in use.
  const [typed, setTyped] = useState({ text: value, over: value })
  const choose = (text: string) => {
    setTyped({ text, over: text })
    onChange(text)
  }
  return (
    <label>
      {label}
      <input
        dir="auto"
        value={typed.over === value ? typed.text : value}
        {...(placeholder && { placeholder })}
        onInput={({ currentTarget }) => setTyped({ text: currentTarget.value, over: value })}
        onChange={({ currentTarget }) => choose(currentTarget.value.trim())}
        onKeyDown={(event) => {
          if (event.key === 'Enter') choose(event.currentTarget.value.trim())
        }}
      />
    </label>
  )
}

interface FieldProps {
  readonly label: ComponentChildren
  readonly hint?: ComponentChildren
  readonly problem?: string | undefined
  readonly children: (props: {
    readonly id: string
    readonly 'aria-describedby': string | undefined
    readonly 'aria-invalid': boolean
  }) => ComponentChildren
}

export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId()
  const about = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label class="label" for={id}>
        {label}
      </label>
      {children({ id, 'aria-describedby': about || undefined, 'aria-invalid': problem !== undefined })}
      {hint && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {problem && (
        <span class="problem" id={`${id}-problem`} role="alert">
          {problem}
        </span>
      )}
    </div>
  )
}

/** A button that is busy while its work lasts. */
export function Act({
  children,
  work,
  class: name = '',
  disabled = false,
}: {
  readonly children: ComponentChildren
  readonly work: () => Promise<unknown>
  readonly class?: string
  readonly disabled?: boolean
}) {
  const [isBusy, setBusy] = useState(false)
  return (
    <button
      type="button"
      class={name}
      disabled={disabled || isBusy}
      aria-busy={isBusy}
      onClick={async () => {
        setBusy(true)
        await work().finally(() => setBusy(false))
      }}
    >
      {children}
    </button>
  )
}

/** Copies a text. */
export function Copy({ text, children = 'Copy' }: { readonly text: string; readonly children?: ComponentChildren }) {
  const [isCopied, setCopied] = useState(false)
  return (
    <button
      type="button"
      class="small"
      onClick={() => {
        navigator.clipboard.writeText(text).then(
          () => setCopied(true),
          () => undefined,
        )
      }}
    >
      {isCopied ? 'Copied' : children}
    </button>
  )
}

/** The command that builds what this build leaves out. */
export const BuildCommand = ({ command }: { readonly command: string }) => (
  <span class="row">
    <code>{command}</code> <Copy text={command} />
  </span>
)
