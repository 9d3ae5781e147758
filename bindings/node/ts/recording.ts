/**
 * The recording of a terminal's session: a file in the format asciicast v2, a line of JSON for the header and one for each event.
 *
 * As described at <https://docs.asciinema.org/manual/asciicast/v2/>. A recording never disturbs what it records: where the file can
 * take no more, it stops, and a warning of the process tells so once.
 *
 * @module
 */
import { open } from 'node:fs/promises'
import { unlinkSync, type WriteStream } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'

import type { SubprocessRecording } from './types.js'

/** What a player needs to know beforehand. */
export interface RecordingHeader {
  cols: number
  rows: number
  terminalType: string
  shell: string | undefined
}

/** One recording, which begins when it is made. */
export class Recording {
  /** JSON is text: the beginning of a character is carried over to the next event. */
  private readonly shown = new StringDecoder('utf8')
  private readonly typed = new StringDecoder('utf8')
  private readonly began = performance.now()
  private readonly closed: Promise<void>
  private stopped = false

  private constructor(
    private readonly path: string,
    private readonly file: WriteStream,
    private readonly withInput: boolean,
  ) {
    this.closed = new Promise((resolve) => file.once('close', resolve))
    file.on('error', (error: Error) => this.fail(error))
  }

  /** Makes the file, which must not be there yet, and writes the header. What a terminal shows is its user's alone. */
  static async create(
    { path, input = false }: SubprocessRecording,
    { cols, rows, terminalType, shell }: RecordingHeader,
  ): Promise<Recording> {
    const file = (await open(path, 'wx', 0o600)).createWriteStream()
    const recording = new Recording(path, file, input)
    const env = { ...(shell !== undefined && { SHELL: shell }), TERM: terminalType }
    await recording.line({ version: 2, width: cols, height: rows, timestamp: Math.floor(Date.now() / 1000), env })
    return recording
  }

  /** Records what the terminal showed. Resolves when the file keeps up. */
  output(bytes: Buffer): Promise<void> {
    return this.event('o', this.shown.write(bytes))
  }

  /** Records what was typed, where that was asked for. */
  input(bytes: Buffer): Promise<void> {
    return this.withInput ? this.event('i', this.typed.write(bytes)) : Promise.resolve()
  }

  /** Records a new size. */
  resize(cols: number, rows: number): Promise<void> {
    return this.event('r', `${cols}x${rows}`)
  }

  /** Ends the recording, and resolves when the file is complete. */
  async end(): Promise<void> {
    if (!this.stopped) {
      await this.event('o', this.shown.end())
      this.stopped = true
      this.file.end()
    }
    await this.closed
  }

  /** Removes the recording of a session that did not begin. */
  async discard(): Promise<void> {
    this.stopped = true
    this.file.destroy()
    await this.closed
    try {
      unlinkSync(this.path)
    } catch {
      // Somebody else removed it.
    }
  }

  private async event(code: string, text: string): Promise<void> {
    if (text === '') return
    // To the microsecond.
    const seconds = Math.round((performance.now() - this.began) * 1000) / 1_000_000
    await this.line([seconds, code, text])
  }

  private async line(value: unknown): Promise<void> {
    if (this.stopped || this.file.write(`${JSON.stringify(value)}\n`)) return
    await new Promise<void>((resolve) => {
      const goOn = (): void => {
        this.file.off('drain', goOn).off('close', goOn)
        resolve()
      }
      this.file.on('drain', goOn).on('close', goOn)
    })
  }

  private fail(error: Error): void {
    if (this.stopped) return
    this.stopped = true
    process.emitWarning(`the recording ${this.path} stopped: ${error.message}`, { code: 'DSH_SUBPROCESS_RECORDING' })
  }
}
