//! A file of the node, through the cap of its entry: its head, its tail or both.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use tenon_core::collect::catalogue::Keep;
use tenon_core::collect::manifest::Status;
use tenon_core::redact::LONGEST_KEY;

use super::item::{Job, Outcome};
use super::sink::Sink;
use super::source;

const CHUNK: usize = 64 << 10;
/// Above this a file with holes is read around them.
const SPARSE_FROM: u64 = 1 << 20;

impl Job<'_> {
    /// Reads a file through the cap.
    pub fn file(&self, sink: &mut Sink<'_>, path: &str, cap: u64) -> Result<Outcome, Outcome> {
        let root = self.shared.root()?;
        let mut file = source::open_regular(root, path)?;
        let metadata = file.metadata()?;
        let (size, on_disk) = (metadata.len(), metadata.blocks().saturating_mul(512));
        let sparse = size > SPARSE_FROM && on_disk < size / 2;
        let content = if sparse { on_disk } else { size };
        let mut reading = Reading { job: self, sink, file: &mut file, sparse, taken: 0 };
        if size <= cap {
            // Files of the kernel have no size; a growing file is read as far as it was.
            let bound = if size == 0 { cap + 1 } else { size };
            reading.stretch(0, bound)?;
            let outcome = Outcome::ok(content.max(reading.taken));
            return match size == 0 && reading.taken > cap {
                true => Ok(Outcome {
                    status: Status::Truncated,
                    note: "the head is kept".into(),
                    ..outcome
                }),
                false => Ok(outcome),
            };
        }
        let keep = self.entry.keep;
        match keep {
            Keep::Head => reading.stretch(0, cap)?,
            Keep::Tail => reading.tail(size, cap)?,
            Keep::Both => {
                reading.stretch(0, cap / 2)?;
                let left_out = format!("\n… {} bytes left out …\n", size - cap);
                reading.sink.take(left_out.as_bytes());
                reading.tail(size, cap / 2)?;
            }
        }
        let note = format!("kept: {}", keep.name());
        Ok(Outcome { status: Status::Truncated, note, original: content })
    }
}

/// A file that is read in stretches.
struct Reading<'r, 'j, 's> {
    job: &'r Job<'j>,
    sink: &'r mut Sink<'s>,
    file: &'r mut File,
    sparse: bool,
    taken: u64,
}

impl Reading<'_, '_, '_> {
    /// The end of a file. A secret may begin before it, so the redactor sees what stands there.
    fn tail(&mut self, size: u64, cap: u64) -> Result<(), Outcome> {
        let start = size - cap;
        let before = if self.sparse { 0 } else { LONGEST_KEY as u64 };
        let lead = start.saturating_sub(before);
        self.file.seek(SeekFrom::Start(lead))?;
        let mut before = vec![0; usize::try_from(start - lead).unwrap_or_default()];
        let mut filled = 0;
        while filled < before.len() {
            match self.file.read(&mut before[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        self.sink.lead_in(&before[..filled]);
        self.stretch(start, cap)
    }

    /// `length` bytes from `start`, or what there is of them.
    fn stretch(&mut self, start: u64, length: u64) -> Result<(), Outcome> {
        let mut buffer = vec![0; CHUNK];
        let end = start + length;
        let mut at = start;
        self.file.seek(SeekFrom::Start(start))?;
        while at < end {
            if self.job.is_late() {
                return Err(self.job.cut_short(end));
            }
            if self.sparse {
                match rustix::fs::seek(&*self.file, rustix::fs::SeekFrom::Data(at)) {
                    Ok(data) if data >= end => break,
                    Ok(data) => at = data,
                    // Nothing but a hole is left.
                    Err(_) => break,
                }
            }
            let most = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            match self.file.read(&mut buffer[..most])? {
                0 => break,
                count => {
                    self.sink.take(&buffer[..count]);
                    at += count as u64;
                    self.taken += count as u64;
                }
            }
        }
        Ok(())
    }
}
