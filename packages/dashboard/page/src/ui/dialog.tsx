/** A question before something that cannot be undone, and dialogs with content of their own; both are native `dialog` elements. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Line, Text } from './text.tsx'

interface DialogProps {
  readonly title: string
  readonly children: ComponentChildren
  readonly onClose: () => void
}

/** An open dialog, for as long as it is rendered. Escape closes it, and the focus returns to where it was. */
export function Dialog({ title, children, onClose }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <div class="stack">
        <h2 id={id}>
          <Line value={title} />
        </h2>
        {children}
      </div>
    </dialog>
  )
}

interface Question {
  readonly title: string
  readonly text: string
  readonly action: string
  readonly danger: boolean
  readonly answer: (agreed: boolean) => void
}

const question = signal<Question | undefined>(undefined)

/** Asks a person, and resolves to whether they agreed. */
export const confirmed = (title: string, text: string, action: string, danger = true): Promise<boolean> =>
  new Promise((resolve) => {
    question.value?.answer(false)
    const answer = (agreed: boolean) => {
      question.value = undefined
      resolve(agreed)
    }
    question.value = { title, text, action, danger, answer }
  })

export function Questions() {
  const asked = question.value
  if (!asked) return null
  const { title, text, action, danger, answer } = asked
  return (
    <Dialog title={title} onClose={() => answer(false)}>
      <Text value={text} />
      <div class="row end">
        <button type="button" onClick={() => answer(false)}>
          Cancel
        </button>
        <button type="button" class={danger ? 'primary danger' : 'primary'} onClick={() => answer(true)}>
          {action}
        </button>
      </div>
    </Dialog>
  )
}
